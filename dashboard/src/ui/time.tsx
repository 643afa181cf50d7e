/** Instants and durations. One switch of the page decides how instants are written; the other forms are in the title. */
import { databaseNow, secondTick } from "../shell/me.js";
import { timeStyle } from "../shell/settings.js";
import { formatDuration } from "./format.js";

export { formatDuration };

const second = 1_000;

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
