/** Instants on the clocks of a time zone, which is that of a schedule and not that of the browser. */

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;

const formatters = new Map<string, Intl.DateTimeFormat | null>();

/** null: this browser does not know the zone. */
function formatterOf(zone: string): Intl.DateTimeFormat | null {
  let formatter = formatters.get(zone);
  if (formatter === undefined) {
    try {
      const parts = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric" } as const;
      formatter = new Intl.DateTimeFormat("en-u-ca-iso8601", {
        ...parts,
        second: "numeric",
        hourCycle: "h23",
        timeZone: zone,
      });
    } catch {
      formatter = null;
    }
    formatters.set(zone, formatter);
  }
  return formatter;
}

export const isKnownZone = (zone: string): boolean => formatterOf(zone) !== null;

/** How far the clocks of the zone are ahead of UTC, in milliseconds. Zones that the browser does not know count as UTC. */
function offsetAt(zone: string, at: number): number {
  const formatter = formatterOf(zone);
  if (formatter === null) return 0;
  const parts = Object.fromEntries(formatter.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1_000) * 1_000;
}

const isoOf = (zone: string, at: number): string => new Date(at + offsetAt(zone, at)).toISOString();

/** "Sun 2026-10-25 02:30", with seconds if there are any. */
export function zoneText(zone: string, at: number): string {
  const iso = isoOf(zone, at);
  const weekday = weekdays[new Date(iso).getUTCDay()] as string;
  return `${weekday} ${iso.slice(0, 10)} ${iso.slice(11, iso.slice(17, 19) === "00" ? 16 : 19)}`;
}

/** "02:30" */
const zoneClock = (zone: string, at: number): string => isoOf(zone, at).slice(11, 16);

/** The value of a field of the type "datetime-local": "2026-10-25T02:30". */
export const zoneFieldValue = (zone: string, at: number): string => isoOf(zone, at).slice(0, 16);

/**
 * The instant at which the clocks of the zone show a local time such as "2026-10-25T02:30": the first of two, and for a time
 * that the clocks skip, as much later as the clocks are moved. null: this is no local time.
 */
export function instantOfLocal(zone: string, local: string): number | null {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(local)) return null;
  const asUtc = Date.parse(`${local}Z`);
  if (Number.isNaN(asUtc)) return null;
  const before = asUtc - offsetAt(zone, asUtc - dayMs);
  const after = asUtc - offsetAt(zone, asUtc + dayMs);
  const fits = [before, after].filter((at) => at + offsetAt(zone, at) === asUtc);
  return fits.length === 0 ? before : Math.min(...fits);
}

interface ClockChange {
  /** The first instant with the new offset. */
  readonly at: number;
  readonly beforeMs: number;
  readonly afterMs: number;
}

/** The change of the clocks that belongs to the local day of the instant; null: there is none. */
function changeOn(zone: string, instant: number): ClockChange | null {
  const dayOf = (local: number) => Math.floor(local / dayMs);
  const day = dayOf(instant + offsetAt(zone, instant));
  for (let from = instant - 2 * dayMs; from < instant + 2 * dayMs; from += hourMs) {
    const beforeMs = offsetAt(zone, from);
    const afterMs = offsetAt(zone, from + hourMs);
    if (beforeMs === afterMs) continue;
    let [low, high] = [from, from + hourMs];
    while (high - low > minuteMs) {
      const middle = low + Math.floor((high - low) / 2 / minuteMs) * minuteMs;
      if (offsetAt(zone, middle) === beforeMs) low = middle;
      else high = middle;
    }
    const at = Math.floor(high / minuteMs) * minuteMs;
    const first = at + Math.min(beforeMs, afterMs);
    const last = at + Math.max(beforeMs, afterMs) - 1;
    if (day >= dayOf(first) && day <= dayOf(last)) return { at, beforeMs, afterMs };
  }
  return null;
}

const clockOf = (local: number): string => new Date(local).toISOString().slice(11, 16);

/** What the clocks do on the local day of an occurrence, and what that means for it. */
export function describeClockChange(zone: string, instant: number): string {
  const change = changeOn(zone, instant);
  if (change === null) return "The clocks change on this day.";
  const { at, beforeMs, afterMs } = change;
  const [from, to] = [clockOf(at + beforeMs), clockOf(at + afterMs)];
  if (afterMs > beforeMs) {
    const moved = instant === at ? ` An occurrence in between runs at ${to}.` : "";
    return `The clocks go forward from ${from} to ${to}, so local times in between do not exist.${moved}`;
  }
  const isFirst = instant < at && instant >= at - (beforeMs - afterMs);
  const isSecond = instant >= at && instant < at + (beforeMs - afterMs);
  const which = isFirst ? "first" : "second";
  const whichOne = isFirst || isSecond ? ` This is the ${which} ${zoneClock(zone, instant)}.` : "";
  return `The clocks go back from ${from} to ${to}, so local times in between occur twice.${whichOne}`;
}
