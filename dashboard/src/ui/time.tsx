/** Instants and durations. One switch of the page decides how instants are written; the other forms are in the title. */
import { databaseNow, secondTick } from "../shell/me.js";
import { timeStyle } from "../shell/settings.js";

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** A duration in at most two units: "420 ms", "1.5 s", "2 m 05 s", "3 h 20 m", "12 d 4 h". */
export function formatDuration(ms: number): string {
  const span = Math.max(0, Math.abs(ms));
  if (span < second) return `${Math.round(span)} ms`;
  if (span < 10 * second) return `${(span / second).toFixed(1)} s`;
  if (span < minute) return `${Math.round(span / second)} s`;
  const twoUnits = (large: number, largeName: string, small: number, smallName: string) => {
    const whole = Math.floor(span / large);
    return `${whole} ${largeName} ${String(Math.floor((span - whole * large) / small)).padStart(2, "0")} ${smallName}`;
  };
  if (span < hour) return twoUnits(minute, "m", second, "s");
  if (span < day) return twoUnits(hour, "h", minute, "m");
  if (span < 100 * day) return twoUnits(day, "d", hour, "h");
  return `${Math.round(span / day).toLocaleString("en")} d`;
}

const two = (value: number) => String(value).padStart(2, "0");

/** An instant as "2026-11-18 16:02:53.120", by the clock on the wall or in UTC. */
export function formatInstant(at: number, isUtc: boolean, options: { readonly withMs?: boolean } = {}): string {
  const date = new Date(at);
  const iso = isUtc
    ? date.toISOString().replace("T", " ").replace("Z", "")
    : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
  return `${options.withMs === true ? iso : iso.slice(0, 19)}${isUtc ? " UTC" : ""}`;
}

/** "5 s ago", "in 2 m 10 s", "now". */
export function formatRelative(at: number, now: number): string {
  const delta = at - now;
  if (Math.abs(delta) < second) return "now";
  return delta < 0 ? `${formatDuration(delta)} ago` : `in ${formatDuration(delta)}`;
}

/** An instant, in the style that the person has chosen. */
export function Time({ at, withMs = false }: { readonly at: string | number | null; readonly withMs?: boolean }) {
  if (at === null) return <span class="mono">–</span>;
  const ms = typeof at === "number" ? at : Date.parse(at);
  const style = timeStyle.value;
  if (style === "relative") void secondTick.value;
  const title = `${formatInstant(ms, false, { withMs: true })} · ${formatInstant(ms, true, { withMs: true })}`;
  return (
    <time class="mono" dateTime={new Date(ms).toISOString()} title={title}>
      {style === "relative" ? formatRelative(ms, databaseNow()) : formatInstant(ms, style === "utc", { withMs })}
    </time>
  );
}

/** How long something took, or has been taking until now if it has not ended. */
export function Took({ from, to }: { readonly from: string | null; readonly to: string | null }) {
  if (from === null) return <span class="mono">–</span>;
  if (to === null) void secondTick.value;
  return <span class="mono">{formatDuration((to === null ? databaseNow() : Date.parse(to)) - Date.parse(from))}</span>;
}
