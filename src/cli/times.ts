/** Formats times for display; the current time is an argument. */
import { formatDuration } from "../core/naming/duration.js";

const secondMs = 1_000;
const units = [
  { ms: 86_400_000, one: " day", many: " days" },
  { ms: 3_600_000, one: "h", many: "h" },
  { ms: 60_000, one: "m", many: "m" },
  { ms: secondMs, one: "s", many: "s" },
] as const;

export const durationText = formatDuration;

/** Returns "3m ago", "in 2 days" or "now": the difference, rounded, in the largest unit of which it is at least one. */
export function relativeTime(at: Date, now: number): string {
  const ms = at.getTime() - now;
  const unit = units.find((candidate, index) => {
    const smallerMs = units[index + 1]?.ms ?? candidate.ms;
    return Math.round(Math.abs(ms) / smallerMs) * smallerMs >= candidate.ms;
  });
  if (unit === undefined) return "now";
  const count = Math.round(Math.abs(ms) / unit.ms);
  const text = `${count.toLocaleString("en")}${count === 1 ? unit.one : unit.many}`;
  return ms < 0 ? `${text} ago` : `in ${text}`;
}

/**
 * Returns "14:02:07" for a time today, "16 Nov 14:02" this year, "16 Nov 2024 14:02" otherwise; in the time zone of
 * this machine.
 */
export function clock(at: Date, now: number): string {
  const [date, today] = [at, new Date(now)];
  const time = `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`;
  if (date.toDateString() === today.toDateString()) return `${time}:${twoDigits(date.getSeconds())}`;
  const day = `${date.getDate()} ${months[date.getMonth()]}`;
  return date.getFullYear() === today.getFullYear() ? `${day} ${time}` : `${day} ${date.getFullYear()} ${time}`;
}

/** Returns both forms of a time, such as "14:02:07 (3m ago)". */
export const absoluteAndRelativeTime = (at: Date, now: number): string =>
  `${clock(at, now)} (${relativeTime(at, now)})`;

/** Shortens the ISO timestamps in a sentence of the library. */
export const shortenTimestamps = (text: string, now: number): string =>
  text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, (iso) => absoluteAndRelativeTime(new Date(iso), now));

const twoDigits = (value: number) => String(value).padStart(2, "0");
const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
