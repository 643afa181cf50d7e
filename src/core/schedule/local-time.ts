/** Instants as people in a time zone write them. */
import { DAY_MS } from "./day.js";
import { zoneOf } from "./zone.js";

const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;

export interface LocalTime {
  /** `Sun 2026-10-25 02:30`, with seconds if there are any. */
  readonly local: string;
  /** `+01:00`: what tells the two occurrences of a repeated hour apart. */
  readonly offset: string;
}

export function localTimeOf(timeZone: string, instant: number): LocalTime {
  const offsetMs = zoneOf(timeZone).offsetAt(instant);
  const local = instant + offsetMs;
  const text = new Date(local).toISOString();
  const weekday = WEEKDAYS[(((Math.floor(local / DAY_MS) + 4) % 7) + 7) % 7] as string;
  return {
    local: `${weekday} ${text.slice(0, 10)} ${text.slice(11, local % 60_000 === 0 ? 16 : 19)}`,
    offset: offsetText(offsetMs),
  };
}

function offsetText(offsetMs: number): string {
  const text = new Date(Math.abs(offsetMs)).toISOString();
  return `${offsetMs < 0 ? "-" : "+"}${text.slice(11, offsetMs % 60_000 === 0 ? 16 : 19)}`;
}
