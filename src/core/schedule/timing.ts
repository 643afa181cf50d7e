/** The data that says when a schedule fires, as it is stored. `rule.ts` makes it of what a user writes. */

/** When a schedule fires: plain JSON data, as it is stored. Instants are epoch milliseconds. */
export type ScheduleRule =
  | {
      readonly kind: "cron";
      /** Five fields: minute, hour, day of month, month, day of week; or a name such as `@daily`. */
      readonly cron: string;
      /** An IANA name, as the user wrote it. */
      readonly timeZone: string;
      /** What becomes of a fixed time that the clocks skip; absent: "shift", to the first instant after the gap. */
      readonly gap?: "skip";
      /** Which one of a fixed time that the clocks repeat; absent: the first. */
      readonly repeat?: "second" | "both";
    }
  /** The instants whose distance to the Unix epoch is a multiple of `everyMs`, plus `offsetMs`. */
  | { readonly kind: "every"; readonly everyMs: number; readonly offsetMs: number }
  /** Sorted, without duplicates. */
  | { readonly kind: "at"; readonly instants: readonly number[] };

/** A rule and what limits it. */
export interface ScheduleTiming {
  readonly rule: ScheduleRule;
  /** There is no instant before it. */
  readonly startAt: number | null;
  /** There is no instant after it. */
  readonly endAt: number | null;
  /**
   * What is left out: the minutes that a cron expression matches, days such as `"2026-12-25"`, or instants. Expressions and days
   * are local time in the zone of a cron rule, and UTC for the other rules.
   */
  readonly except: readonly (string | number)[];
}

/** The first and the last instant that a schedule can have: the years 1970 to 2200, in UTC. */
export const FIRST_INSTANT = 0;
export const LAST_INSTANT = Date.UTC(2201, 0, 1) - 1;
