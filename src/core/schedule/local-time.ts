/** Instants as people in a time zone read and write them. */
import { DAY_MS } from "./day.js";
import { isTransitionDay } from "./describe.js";
import { FIRST_INSTANT, LAST_INSTANT } from "./timing.js";
import { zoneOf } from "./zone.js";

const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;

export interface LocalInstant {
  /** `Sun 2026-10-25 02:30`, with seconds if there are any. */
  readonly local: string;
  /** `+01:00`: what tells the two occurrences of a repeated hour apart. */
  readonly offset: string;
  /** Whether the clocks change on the local day. */
  readonly transitionDay: boolean;
}

export function describeInstant(timeZone: string, instant: number): LocalInstant {
  const offsetMs = zoneOf(timeZone).offsetAt(instant);
  const local = instant + offsetMs;
  const text = new Date(local).toISOString();
  const weekday = WEEKDAYS[(((Math.floor(local / DAY_MS) + 4) % 7) + 7) % 7] as string;
  return {
    local: `${weekday} ${text.slice(0, 10)} ${text.slice(11, local % 60_000 === 0 ? 16 : 19)}`,
    offset: offsetText(offsetMs),
    transitionDay: isTransitionDay(timeZone, instant),
  };
}

function offsetText(offsetMs: number): string {
  const text = new Date(Math.abs(offsetMs)).toISOString();
  return `${offsetMs < 0 ? "-" : "+"}${text.slice(11, offsetMs % 60_000 === 0 ? 16 : 19)}`;
}

const LOCAL_TEXT = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?$/;

/**
 * The instant of a local date such as `2026-10-25`, or date and time such as `2026-10-25 02:30`; null for other texts. A time
 * that the clocks repeat is the first of the two, one that they skip is as long after midnight as the clocks before the change say.
 */
export function parseLocalInstant(timeZone: string, text: string): number | null {
  const [, day, time = "00:00"] = LOCAL_TEXT.exec(text.trim()) ?? [];
  if (day === undefined) return null;
  const local = Date.parse(`${day}T${time}Z`);
  // Date.parse accepts the 30th of February in some versions of Node.
  if (Number.isNaN(local) || new Date(local).toISOString().slice(0, 10) !== day) return null;
  const zone = zoneOf(timeZone);
  if (local - DAY_MS < FIRST_INSTANT || local + DAY_MS > LAST_INSTANT) return null;
  const offsetBefore = zone.offsetAt(local - DAY_MS);
  const first = local - offsetBefore;
  const offsetThen = zone.offsetAt(first);
  const second = local - offsetThen;
  return zone.offsetAt(second) === offsetThen ? second : first;
}
