/** The instants of the rules `every` and `at`, whose exceptions are in UTC. */
import { cronExpression } from "./cron.js";
import type { Exceptions } from "./exceptions.js";
import { MatchingMinutes } from "./matching-minutes.js";
import type { ScheduleRule } from "./timing.js";

type EveryRule = Extract<ScheduleRule, { kind: "every" }>;
type AtRule = Extract<ScheduleRule, { kind: "at" }>;

/**
 * So many excepted instants in a row are taken for the end, for a rule whose instants are all excepted must not be followed until
 * 2200. These take 0.3 s, and are four years of a rule that fires every two minutes.
 */
const MAX_EXCEPTED = 1_000_000;

export class EveryInstants {
  readonly #rule: EveryRule;
  readonly #exceptions: Exceptions;
  /** The minutes that are not excepted, of all there are. */
  readonly #allowedMinutes: MatchingMinutes;

  constructor(rule: EveryRule, exceptions: Exceptions) {
    this.#rule = rule;
    this.#exceptions = exceptions;
    this.#allowedMinutes = new MatchingMinutes(cronExpression("* * * * *"), exceptions);
  }

  next(after: number): number | null {
    let instant = this.#firstFrom(after + 1);
    for (let excepted = 0; this.#exceptions.hasLocalTime(instant); excepted++) {
      // A rule that fires each second would take long to walk through a day that is excepted.
      const allowed = this.#allowedMinutes.next(instant);
      if (allowed === null || excepted > MAX_EXCEPTED) return null;
      instant = this.#firstFrom(allowed);
    }
    return instant;
  }

  #firstFrom(earliest: number): number {
    const { everyMs, offsetMs } = this.#rule;
    return Math.ceil((earliest - offsetMs) / everyMs) * everyMs + offsetMs;
  }
}

export class AtInstants {
  readonly #instants: readonly number[];

  constructor(rule: AtRule, exceptions: Exceptions) {
    this.#instants = rule.instants.filter((instant) => !exceptions.hasLocalTime(instant));
  }

  next(after: number): number | null {
    return this.#instants.find((instant) => instant > after) ?? null;
  }
}
