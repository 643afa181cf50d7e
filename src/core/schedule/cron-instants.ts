/** The instants of a cron rule: times on the clock of a zone, translated to real time. */
import { cronExpression } from "./cron.js";
import type { Exceptions } from "./exceptions.js";
import { MatchingMinutes } from "./matching-minutes.js";
import { LAST_INSTANT, type ScheduleRule } from "./timing.js";
import { LONGEST_CHANGE_MS, type OffsetChange, type Zone, zoneOf } from "./zone.js";

type CronRule = Extract<ScheduleRule, { kind: "cron" }>;

/** The earliest time on the clock that counts from here on. */
interface Position {
  readonly localMs: number;
  readonly offsetMs: number;
  /** The instant up to which changes of the offset have been dealt with. */
  readonly instant: number;
}

/**
 * Between two changes of the offset, local time and real time go side by side, so the search takes one such stretch after the
 * other: from the first local time in it to the next matching minute, unless a change of the offset comes earlier.
 */
export class CronInstants {
  readonly #zone: Zone;
  readonly #exceptions: Exceptions;
  readonly #minutes: MatchingMinutes;
  /** With the excepted minutes: a time in a gap is shifted out of it, and only then compared with the exceptions. */
  readonly #minutesInGaps: MatchingMinutes | null;
  readonly #repeat: "first" | "second" | "both";

  constructor(rule: CronRule, exceptions: Exceptions) {
    const cron = cronExpression(rule.cron);
    this.#zone = zoneOf(rule.timeZone);
    this.#exceptions = exceptions;
    this.#minutes = new MatchingMinutes(cron, exceptions);
    const isShifted = cron.isWallClock && rule.gap !== "skip";
    this.#minutesInGaps = isShifted ? new MatchingMinutes(cron, null) : null;
    this.#repeat = cron.isWallClock ? (rule.repeat ?? "first") : "both";
  }

  /** The first instant after `after` that no day or expression excepts. */
  next(after: number): number | null {
    let position = this.#startAfter(after);
    for (;;) {
      const localMs = this.#minutes.next(position.localMs);
      const instant = localMs === null ? LAST_INSTANT : localMs - position.offsetMs;
      const change = this.#zone.firstChange(position.instant, instant);
      if (change !== null) {
        if (this.#isShiftedTo(change)) return change.at;
        position = this.#startAt(change);
      } else if (localMs === null) {
        return null;
      } else {
        const repetition = this.#repeat === "second" ? this.#repetitionOf(instant, localMs) : null;
        if (repetition === null) return instant;
        position = this.#startAt(repetition);
      }
    }
  }

  #startAfter(after: number): Position {
    const offsetMs = this.#zone.offsetAt(after);
    const localMs = after + 1 + offsetMs;
    // The clocks may repeat what they have already shown before `after`.
    const change = this.#repeat === "first" ? this.#zone.lastChange(after - LONGEST_CHANGE_MS, after) : null;
    const shownUntil = change === null ? localMs : change.at + change.beforeMs;
    return { localMs: Math.max(localMs, shownUntil), offsetMs, instant: after };
  }

  #startAt({ at, beforeMs, afterMs }: OffsetChange): Position {
    const isRepeated = beforeMs > afterMs && this.#repeat === "first";
    return { localMs: at + (isRepeated ? beforeMs : afterMs), offsetMs: afterMs, instant: at };
  }

  /** Whether a time in the gap that the change makes is shifted to the end of the gap. */
  #isShiftedTo({ at, beforeMs, afterMs }: OffsetChange): boolean {
    if (this.#minutesInGaps === null || afterMs <= beforeMs) return false;
    const shifted = this.#minutesInGaps.next(at + beforeMs);
    return shifted !== null && shifted < at + afterMs && !this.#exceptions.hasLocalTime(at + afterMs);
  }

  /** The change after which the clocks show this time again; null if they do not. */
  #repetitionOf(instant: number, localMs: number): OffsetChange | null {
    const change = this.#zone.firstChange(instant, instant + LONGEST_CHANGE_MS);
    return change !== null && localMs >= change.at + change.afterMs ? change : null;
  }
}
