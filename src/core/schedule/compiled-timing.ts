/** What is computed of a timing once, for all of its instants. */
import { CronInstants } from "./cron-instants.js";
import { Exceptions } from "./exceptions.js";
import { AtInstants, EveryInstants } from "./plain-instants.js";
import { FIRST_INSTANT, LAST_INSTANT, type ScheduleRule, type ScheduleTiming } from "./timing.js";

/** Finds instants that no day or expression excepts, without regard to the other limits of a timing. */
interface InstantSearch {
  next(after: number): number | null;
}

class CompiledTiming {
  readonly #search: InstantSearch;
  readonly #exceptions: Exceptions;
  readonly #startAt: number;
  readonly #endAt: number;

  constructor({ rule, startAt, endAt, except }: ScheduleTiming) {
    this.#exceptions = new Exceptions(except);
    this.#search = searchOf(rule, this.#exceptions);
    this.#startAt = Math.max(startAt ?? FIRST_INSTANT, FIRST_INSTANT);
    this.#endAt = Math.min(endAt ?? LAST_INSTANT, LAST_INSTANT);
  }

  /** The first instant after `after`. */
  next(after: number): number | null {
    let last = Math.max(after, this.#startAt - 1);
    // Also false when `after` is not a number.
    while (last < this.#endAt) {
      const next = this.#search.next(last);
      if (next === null || next > this.#endAt) return null;
      if (!this.#exceptions.hasInstant(next)) return next;
      last = next;
    }
    return null;
  }
}

function searchOf(rule: ScheduleRule, exceptions: Exceptions): InstantSearch {
  switch (rule.kind) {
    case "cron":
      return new CronInstants(rule, exceptions);
    case "every":
      return new EveryInstants(rule, exceptions);
    case "at":
      return new AtInstants(rule, exceptions);
  }
}

/** A compiled timing is kept as long as the timing itself, which is immutable. */
const compiledTimings = new WeakMap<ScheduleTiming, CompiledTiming>();

export function compiled(timing: ScheduleTiming): CompiledTiming {
  let search = compiledTimings.get(timing);
  if (search === undefined) compiledTimings.set(timing, (search = new CompiledTiming(timing)));
  return search;
}
