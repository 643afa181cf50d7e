/**
 * Tells whoever listens of all that has become durable in this process: the events of runs on the channel `pawl:event`,
 * what became of the runs themselves on `pawl:run` (node:diagnostics_channel), and both to the log at level debug.
 * Nobody listens as a rule; then a transition costs three comparisons.
 */
import { channel } from "node:diagnostics_channel";
import { endingOf } from "../core/ending.js";
import type { NewEvent } from "../core/event.js";
import { frozenVersion } from "../core/route.js";
import type { Logger } from "../define/context.js";
import type { Birth, Next, RunStatus } from "../store/store.js";
import { quiet } from "./logger.js";

/** What is known of the run that a message is about. */
export interface ToldRun {
  readonly runId: string;
  readonly workflow: string;
  readonly version: string;
  readonly queue: string;
  readonly parentId: string | null;
  readonly hero: { readonly type: string; readonly id: string } | null;
}

/** One event of a run's log, on the channel `pawl:event`. */
export interface ToldEvent extends ToldRun {
  readonly seq: number;
  readonly type: string;
  /** The step, node, timer… that it is about. */
  readonly node: string | null;
  readonly attempt: number | null;
  readonly outcome: string | null;
  /** As it is stored: encoded text. */
  readonly data: string | null;
  /** The store's time, in epoch milliseconds. */
  readonly at: number;
}

/** What became of a run, on the channel `pawl:run`. */
export interface ToldStatus extends ToldRun {
  readonly status: RunStatus;
  readonly at: number;
}

const eventChannel = channel("pawl:event");
const runChannel = channel("pawl:run");

const isHeard = (log: Logger) => eventChannel.hasSubscribers || runChannel.hasSubscribers || log.debug !== quiet;

interface Told {
  readonly events: readonly NewEvent[];
  readonly after: number;
  readonly at: number;
  readonly next: Next;
  readonly starts: readonly Birth[];
}

/** Events were written behind number `after`, and this became of the run's task. */
export function tellOfCommit(log: Logger, birth: Birth, { events, after, at, next, starts }: Told): void {
  if (!isHeard(log)) return;
  const run = runOf(birth);
  for (const child of starts) tellOfStatus(log, { ...runOf(child), status: "pending", at });
  let seq = after;
  for (const { type, node, attempt, outcome, data } of events)
    tellOfEvent(log, { ...run, seq: ++seq, type, node, attempt, outcome, data, at });
  if (next.kind === "keep") return;
  const ending = next.kind === "finish" ? endingOf({ ...next, finishedAt: at }, seq) : null;
  if (ending !== null) tellOfEvent(log, { ...run, ...ending });
  tellOfStatus(log, { ...run, status: next.status, at });
}

/** A run was made, or is being executed from now on. */
export function tellOfRun(log: Logger, birth: Birth, status: "pending" | "running", at: number): void {
  if (isHeard(log)) tellOfStatus(log, { ...runOf(birth), status, at });
}

function tellOfEvent(log: Logger, told: ToldEvent): void {
  if (eventChannel.hasSubscribers) eventChannel.publish(told);
  if (log.debug === quiet) return;
  const { runId, workflow, type, node, attempt, outcome } = told;
  const what = [node, attempt === null ? null : `attempt ${attempt}`, outcome]
    .filter((part) => part !== null)
    .join(", ");
  log.debug(`Run ${runId} (${workflow}): ${type}${what === "" ? "" : ` ${what}`}`);
}

function tellOfStatus(log: Logger, told: ToldStatus): void {
  if (runChannel.hasSubscribers) runChannel.publish(told);
  if (log.debug !== quiet) log.debug(`Run ${told.runId} (${told.workflow}) is ${told.status}`);
}

function runOf({ id, workflow, version, queue, parentId, heroType, heroId }: Birth): ToldRun {
  return {
    runId: id,
    workflow,
    version: version === frozenVersion ? "" : version,
    queue,
    parentId,
    hero: heroType === null || heroId === null ? null : { type: heroType, id: heroId },
  };
}
