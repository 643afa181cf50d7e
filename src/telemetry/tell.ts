/**
 * Tells listeners of all that has become durable in this process: the events of runs on the channel `pawl:event`,
 * what became of the runs themselves on `pawl:run` (node:diagnostics_channel), and both to the log at level debug.
 * As a rule there is no listener; then a transition costs three comparisons.
 */
import { decode } from "../core/encoding/decode.js";
import { type Failure, reviveFailure } from "../core/encoding/error-record.js";
import { frozenVersion } from "../core/naming/route.js";
import { dataOf, type NewEvent } from "../core/run/event.js";
import type { RunState } from "../core/run/state.js";
import { onFailureStep } from "../core/run/step-name.js";
import { endingOf } from "../core/run/terminal-event.js";
import type { Logger } from "../define/context.js";
import type { Birth, Next, RunStatus } from "../store/contract/store.js";
import { quiet } from "./logger.js";
import { safeChannel } from "./safe-channel.js";
import { debugIsRead, logAbout } from "./safe-logger.js";

/** What is known of the run that a message is about. */
export interface ToldRun {
  readonly runId: string;
  readonly workflow: string;
  readonly version: string;
  readonly queue: string;
  readonly parentId: string | null;
  readonly hero: { readonly type: string; readonly id: string } | null;
  readonly tags: readonly string[];
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

const eventChannel = safeChannel("pawl:event");
const runChannel = safeChannel("pawl:run");

const eventsAreHeard = (log: Logger) => eventChannel.hasSubscribers || debugIsRead(log);
const runsAreHeard = (log: Logger) => runChannel.hasSubscribers || debugIsRead(log);

interface Told {
  readonly events: readonly NewEvent[];
  readonly after: number;
  readonly at: number;
  readonly next: Next;
  readonly starts: readonly Birth[];
  /** The state of the run, if the caller has it: it knows which step made the run fail. */
  readonly state?: Pick<RunState, "ops">;
}

/** Events were written behind number `after`, and this became of the run's task. */
export function tellOfCommit(log: Logger, birth: Birth, told: Told): void {
  const { events, after, at, next, starts } = told;
  if (runsAreHeard(log)) for (const child of starts) tellOfStatus(log, child, "pending", at);
  if (eventsAreHeard(log)) {
    for (const [index, one] of events.entries()) tellOfEvent(log, birth, one, after + 1 + index, at);
    const last = after + events.length;
    const ending = next.kind === "finish" ? endingOf({ ...next, finishedAt: at }, last) : null;
    if (ending !== null) tellOfEvent(log, birth, ending, ending.seq, ending.at);
  }
  if (next.kind !== "keep" && runsAreHeard(log)) tellOfStatus(log, birth, next.status, at);
  if (next.kind === "finish" && next.status === "failed") warnOfFailure(log, birth, next.error, told);
}

/** What a child's failure means is its parent's business. */
function warnOfFailure(log: Logger, birth: Birth, encoded: string | null, told: Told): void {
  const level = birth.parentId === null ? "warn" : "info";
  if (log[level] === quiet) return;
  const failure = encoded === null ? null : (decode(encoded) as Failure);
  const step = failure === null ? null : stepThatThrew(failure, told);
  const error = failure === null ? undefined : reviveFailure(failure);
  const why = error === undefined ? "." : `: ${error.message}`;
  const where = step === null ? "" : ` at step "${step}"`;
  const fields = { ...about(birth), ...(step === null ? {} : { step }) };
  logAbout(log, level, fields, `Run ${birth.id} (${birth.workflow}) failed${where}${why}`, error);
}

/** The step whose last attempt threw what the run failed with; null when the code threw it elsewhere. */
function stepThatThrew({ name, message }: Failure, { events, state }: Told): string | null {
  const isIt = (failed: { readonly data: string | null }) => {
    const { error, retryMs } = dataOf(failed, "step.failed");
    return retryMs === undefined && error.name === name && error.message === message;
  };
  const written = events.findLast((one) => one.type === "step.failed" && isIt(one));
  if (written !== undefined) return written.node;
  for (const [key, op] of state?.ops ?? [])
    if (op.kind === "step" && op.phase === "failed" && key !== onFailureStep && isIt(op)) return key;
  return null;
}

/**
 * A paused run waits for a person: it must not do so in silence. `ctx.pause()`, a `PauseError` and an operator are no reason
 * for a warning; any other error is.
 */
export function tellOfPause(
  log: Logger,
  birth: Pick<Birth, "id" | "workflow">,
  { reason, error, node }: { readonly reason: string; readonly error: Failure | null; readonly node: string | null },
): void {
  const failure = error?.code === "PAUSE_ERROR" ? null : error;
  const level = failure === null ? "info" : "warn";
  if (log[level] === quiet) return;
  const fields = { ...about(birth), ...(node === null ? {} : { step: node }) };
  const thrown = failure === null ? undefined : reviveFailure(failure);
  logAbout(log, level, fields, `Run ${birth.id} (${birth.workflow}) is paused: ${reason}`, thrown);
}

const about = ({ id, workflow }: Pick<Birth, "id" | "workflow">) => ({ runId: id, workflow });

/** A run was made, or is being executed from now on. */
export function tellOfRun(log: Logger, birth: Birth, status: "pending" | "running", at: number): void {
  if (runsAreHeard(log)) tellOfStatus(log, birth, status, at);
}

function tellOfEvent(log: Logger, birth: Birth, one: NewEvent, seq: number, at: number): void {
  const { type, node, attempt, outcome, data } = one;
  if (eventChannel.hasSubscribers) {
    const { id: runId, workflow, queue, parentId, tags } = birth;
    // In one piece: to spread the part that is common to both would cost more than everything else here.
    const told: ToldEvent = {
      runId,
      workflow,
      version: versionOf(birth),
      queue,
      parentId,
      hero: heroOf(birth),
      tags,
      seq,
      type,
      node,
      attempt,
      outcome,
      data,
      at,
    };
    eventChannel.publish(told);
  }
  if (!debugIsRead(log)) return;
  const what = [node, attempt === null ? null : `attempt ${attempt}`, outcome]
    .filter((part) => part !== null)
    .join(", ");
  const fields = { ...about(birth), event: type, step: node, attempt, outcome };
  logAbout(log, "debug", fields, `Run ${birth.id} (${birth.workflow}): ${type}${what === "" ? "" : ` ${what}`}`);
}

function tellOfStatus(log: Logger, birth: Birth, status: RunStatus, at: number): void {
  if (runChannel.hasSubscribers) {
    const told: ToldStatus = { ...toldRun(birth), status, at };
    runChannel.publish(told);
  }
  if (debugIsRead(log))
    logAbout(log, "debug", { ...about(birth), status }, `Run ${birth.id} (${birth.workflow}) is ${status}`);
}

/** What every message says of its run. */
export function toldRun(birth: Birth): ToldRun {
  const { id: runId, workflow, queue, parentId, tags } = birth;
  return { runId, workflow, version: versionOf(birth), queue, parentId, hero: heroOf(birth), tags };
}

const heroOf = ({ heroType: type, heroId: id }: Birth): ToldRun["hero"] =>
  type === null || id === null ? null : { type, id };

const versionOf = ({ version }: Birth) => (version === frozenVersion ? "" : version);
