/**
 * Offsets of time zones from UTC, from the zone data of `Intl`. A call of Intl takes about 3 µs, and each instant of a schedule
 * needs several offsets, so the changes of an offset are found once for each period of 256 days and kept.
 */
import { InvalidInputError } from "../errors/errors.js";
import { LruMap } from "../lru-map.js";
import { DAY_MS } from "./day.js";

/** A change of a zone's offset. Local time is the instant plus the offset. */
export interface OffsetChange {
  /** The first instant with the new offset. */
  readonly at: number;
  readonly beforeMs: number;
  readonly afterMs: number;
}

const PERIOD_MS = 256 * DAY_MS;
/**
 * Two changes within a step could cancel each other out and stay unseen. From 1970 to 2200 no zone has two within less than
 * seven days (in Node 20 with the zone data 2025c; seven are between those of America/Recife in 2000).
 */
const STEP_MS = 4 * DAY_MS;
/** No zone has a change of more than 24 hours: Pacific/Apia skipped a day. */
export const LONGEST_CHANGE_MS = DAY_MS;

interface Period {
  /** The offset at its first instant. */
  readonly offsetMs: number;
  /** After its first instant, up to the first instant of the next period. */
  readonly changes: readonly OffsetChange[];
}

export class Zone {
  readonly #timeZone: string;
  readonly #periods = new Map<number, Period>();

  constructor(timeZone: string) {
    this.#timeZone = timeZone;
  }

  offsetAt(instant: number): number {
    const { offsetMs, changes } = this.#period(Math.floor(instant / PERIOD_MS));
    let offset = offsetMs;
    for (const change of changes) if (change.at <= instant) offset = change.afterMs;
    return offset;
  }

  /** The first change in (after, until]. */
  firstChange(after: number, until: number): OffsetChange | null {
    const last = Math.floor(until / PERIOD_MS);
    for (let index = Math.floor(after / PERIOD_MS); index <= last; index++) {
      for (const change of this.#period(index).changes)
        if (change.at > after) return change.at <= until ? change : null;
    }
    return null;
  }

  /** The last change in (after, until]. */
  lastChange(after: number, until: number): OffsetChange | null {
    const first = Math.floor(after / PERIOD_MS);
    for (let index = Math.floor(until / PERIOD_MS); index >= first; index--) {
      const { changes } = this.#period(index);
      for (let at = changes.length - 1; at >= 0; at--) {
        const change = changes[at] as OffsetChange;
        if (change.at <= until) return change.at > after ? change : null;
      }
    }
    return null;
  }

  #period(index: number): Period {
    let period = this.#periods.get(index);
    if (period === undefined) this.#periods.set(index, (period = findChanges(this.#timeZone, index * PERIOD_MS)));
    return period;
  }
}

/** A zone takes up to 30 KB, once instants of all 230 years have been asked for; usually less than 1 KB. */
const recentZones = new LruMap<Zone>(200);
/** One takes 48 KB, and a zone needs it only for periods that it does not know yet. */
const recentFormats = new LruMap<Intl.DateTimeFormat>(20);

export function zoneOf(timeZone: string): Zone {
  let zone = recentZones.get(timeZone);
  if (zone === undefined) recentZones.set(timeZone, (zone = new Zone(timeZone)));
  return zone;
}

function findChanges(timeZone: string, start: number): Period {
  const offsetAt = offsetReader(timeZone);
  const offsetMs = offsetAt(start);
  const changes: OffsetChange[] = [];
  let before = offsetMs;
  for (let at = start + STEP_MS; at <= start + PERIOD_MS; at += STEP_MS) {
    const after = offsetAt(at);
    if (after === before) continue;
    changes.push({ at: findChange(offsetAt, at - STEP_MS, at, before), beforeMs: before, afterMs: after });
    before = after;
  }
  return { offsetMs, changes };
}

/** Changes are at whole seconds. */
function findChange(offsetAt: (instant: number) => number, from: number, to: number, before: number): number {
  let low = from / 1000;
  let high = to / 1000;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle * 1000) === before) low = middle;
    else high = middle;
  }
  return high * 1000;
}

/** Some versions of Unicode's data write a minus sign, others a hyphen. */
const LONG_OFFSET = /GMT(?:([+\-\u2212])(\d\d):(\d\d)(?::(\d\d))?)?$/;

function offsetReader(timeZone: string): (instant: number) => number {
  const format = formatOf(timeZone);
  return (instant) => {
    const [match, sign, hours, minutes, seconds] = LONG_OFFSET.exec(format.format(instant)) ?? [];
    if (match === undefined) throw unknownZone(timeZone);
    if (sign === undefined) return 0;
    return (sign === "+" ? 1000 : -1000) * (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds ?? 0));
  };
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = recentFormats.get(timeZone);
  if (format !== undefined) return format;
  try {
    // Of all formats this one is read fastest: "1/1/1970, GMT+01:00".
    format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
  } catch (error) {
    throw unknownZone(timeZone, error);
  }
  recentFormats.set(timeZone, format);
  return format;
}

/** A stored rule may have the name of a zone that another runtime, with newer zone data, has accepted. */
function unknownZone(timeZone: string, cause?: unknown): InvalidInputError {
  const name = JSON.stringify(timeZone);
  return new InvalidInputError(
    `The zone data of this runtime does not have the time zone ${name}; update the runtime or use another name.`,
    { cause },
  );
}
