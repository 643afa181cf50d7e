/** The options of `pawl.schedules`, and what its calls return besides schedules and occurrences. */
import type { CommandAudit } from "../../core/run/stored-schema.js";
import { auditField } from "../command/command-options.js";

/** Who does something to a schedule, and why. */
export interface ScheduleCommandOptions {
  /** Who does it, such as the name of a user. */
  readonly by?: string | undefined;
  /** Why it is done. */
  readonly reason?: string | undefined;
}

/** Options of `pawl.schedules.list()`. */
export interface ScheduleListOptions {
  /** Only schedules that this application declares. */
  readonly app?: string;
  /** How many schedules a page has at most, 1 to 1,000. Default 100. */
  readonly limit?: number;
  /** The `next` of the previous page. */
  readonly cursor?: string;
}

/** What a backfill starts, or with `dryRun` would start. */
export interface BackfillResult {
  /** The instants that run, one after another, the oldest first. */
  readonly instants: Date[];
  /** How many instants of the range have run already, or are going to. They are left out. */
  readonly alreadyDone: number;
}

const commandOptions = ["by", "reason"] as const;
export const pauseOptions = new Set([...commandOptions, "until"]);
export const resumeOptions = new Set<string>(commandOptions);
export const triggerOptions = new Set([...commandOptions, "force"]);
export const backfillOptions = new Set([...commandOptions, "from", "to", "dryRun"]);
export const listOptions = new Set(["app", "limit", "cursor"]);
export const occurrencesOptions = new Set(["limit", "cursor"]);

export const auditOf = (options: ScheduleCommandOptions): CommandAudit => auditField(options).audit ?? {};
