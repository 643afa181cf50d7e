/**
 * Tells listeners of all that has become durable in this process: the events of runs on the channel `pawl:event`,
 * what became of the runs themselves on `pawl:run` (node:diagnostics_channel), and both to the log at level debug.
 * As a rule there is no listener; then a transition costs three comparisons.
 */
import { decode } from "../core/encoding/decode.js";
import { type Failure, reviveFailure } from "../core/encoding/error-record.js";
import { frozenDagVersion } from "../core/naming/route.js";
import { dataOf, type NewEvent } from "../core/run/event.js";
import type { RunState } from "../core/run/state.js";
import { onFailureStep } from "../core/run/step-name.js";
import { terminalEventOf } from "../core/run/terminal-event.js";
import type { Logger } from "../define/context.js";
import type { NextTaskState, RunSpec, RunStatus } from "../store/contract/store.js";
import { discardLog } from "./logger.js";
import { safeChannel } from "./safe-channel.js";
import { isDebugEnabled, logWithFields } from "./safe-logger.js";

/** What is known of the run that a message is about. */
export interface PublishedRun {
  readonly runId: string;
  readonly workflow: string;
  readonly version: string;
  readonly queue: string;
  readonly parentId: string | null;
  readonly hero: { readonly type: string; readonly id: string } | null;
  readonly tags: readonly string[];
}

/** One event of a run's log, on the channel `pawl:event`. */
export interface RunEvent extends PublishedRun {
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
export interface RunStatusChange extends PublishedRun {
  readonly status: RunStatus;
  readonly at: number;
}

const eventChannel = safeChannel("pawl:event");
const runChannel = safeChannel("pawl:run");

const hasEventListeners = (log: Logger) => eventChannel.hasSubscribers || isDebugEnabled(log);
const hasStatusListeners = (log: Logger) => runChannel.hasSubscribers || isDebugEnabled(log);

interface CommittedChange {
  readonly events: readonly NewEvent[];
  readonly afterSeq: number;
  readonly at: number;
  readonly next: NextTaskState;
  readonly newChildren: readonly RunSpec[];
  /** The state of the run, if the caller has it: it knows which step made the run fail. */
  readonly state?: Pick<RunState, "ops">;
}

/** Events were written behind number `after`, and this became of the run's task. */
export function publishCommit(log: Logger, run: RunSpec, change: CommittedChange): void {
  const { events, afterSeq, at, next, newChildren } = change;
  if (hasStatusListeners(log)) for (const child of newChildren) emitStatus(log, child, "pending", at);
  if (hasEventListeners(log)) {
    for (const [index, event] of events.entries()) emitEvent(log, run, event, afterSeq + 1 + index, at);
    const last = afterSeq + events.length;
    const ending = next.kind === "finish" ? terminalEventOf({ ...next, finishedAt: at }, last) : null;
    if (ending !== null) emitEvent(log, run, ending, ending.seq, ending.at);
  }
  if (next.kind !== "keep" && hasStatusListeners(log)) emitStatus(log, run, next.status, at);
  if (next.kind === "finish" && next.status === "failed") logFailure(log, run, next.error, change);
}

/** What a child's failure means is its parent's business. */
function logFailure(log: Logger, run: RunSpec, encodedError: string | null, change: CommittedChange): void {
  const level = run.parentId === null ? "warn" : "info";
  if (log[level] === discardLog) return;
  const failure = encodedError === null ? null : (decode(encodedError) as Failure);
  const step = failure === null ? null : findFailedStep(failure, change);
  const error = failure === null ? undefined : reviveFailure(failure);
  const reasonText = error === undefined ? "." : `: ${error.message}`;
  const stepText = step === null ? "" : ` at step "${step}"`;
  const fields = { ...runLogFields(run), ...(step === null ? {} : { step }) };
  logWithFields(log, level, fields, `Run ${run.id} (${run.workflow}) failed${stepText}${reasonText}`, error);
}

/** The step whose last attempt threw what the run failed with; null when the code threw it elsewhere. */
function findFailedStep({ name, message }: Failure, { events, state }: CommittedChange): string | null {
  const isSameFailure = (failed: { readonly data: string | null }) => {
    const { error, retryMs } = dataOf(failed, "step.failed");
    return retryMs === undefined && error.name === name && error.message === message;
  };
  const failedEvent = events.findLast((one) => one.type === "step.failed" && isSameFailure(one));
  if (failedEvent !== undefined) return failedEvent.node;
  for (const [key, op] of state?.ops ?? [])
    if (op.kind === "step" && op.phase === "failed" && key !== onFailureStep && isSameFailure(op)) return key;
  return null;
}

/**
 * A paused run waits for a person: it must not do so in silence. `ctx.pause()`, a `PauseError` and an operator are no reason
 * for a warning; any other error is.
 */
export function logPause(
  log: Logger,
  run: Pick<RunSpec, "id" | "workflow">,
  { reason, error, node }: { readonly reason: string; readonly error: Failure | null; readonly node: string | null },
): void {
  const failure = error?.code === "PAUSE_ERROR" ? null : error;
  const level = failure === null ? "info" : "warn";
  if (log[level] === discardLog) return;
  const fields = { ...runLogFields(run), ...(node === null ? {} : { step: node }) };
  const thrown = failure === null ? undefined : reviveFailure(failure);
  logWithFields(log, level, fields, `Run ${run.id} (${run.workflow}) is paused: ${reason}`, thrown);
}

const runLogFields = ({ id, workflow }: Pick<RunSpec, "id" | "workflow">) => ({ runId: id, workflow });

/** A run was made, or is being executed from now on. */
export function publishStatus(log: Logger, run: RunSpec, status: "pending" | "running", at: number): void {
  if (hasStatusListeners(log)) emitStatus(log, run, status, at);
}

function emitEvent(log: Logger, run: RunSpec, event: NewEvent, seq: number, at: number): void {
  const { type, node, attempt, outcome, data } = event;
  if (eventChannel.hasSubscribers) {
    const { id: runId, workflow, queue, parentId, tags } = run;
    // In one piece: to spread the part that is common to both would cost more than everything else here.
    const message: RunEvent = {
      runId,
      workflow,
      version: versionOf(run),
      queue,
      parentId,
      hero: heroOf(run),
      tags,
      seq,
      type,
      node,
      attempt,
      outcome,
      data,
      at,
    };
    eventChannel.publish(message);
  }
  if (!isDebugEnabled(log)) return;
  const details = [node, attempt === null ? null : `attempt ${attempt}`, outcome]
    .filter((part) => part !== null)
    .join(", ");
  const fields = { ...runLogFields(run), event: type, step: node, attempt, outcome };
  logWithFields(log, "debug", fields, `Run ${run.id} (${run.workflow}): ${type}${details === "" ? "" : ` ${details}`}`);
}

function emitStatus(log: Logger, run: RunSpec, status: RunStatus, at: number): void {
  if (runChannel.hasSubscribers) {
    const message: RunStatusChange = { ...publishedRunOf(run), status, at };
    runChannel.publish(message);
  }
  if (isDebugEnabled(log))
    logWithFields(log, "debug", { ...runLogFields(run), status }, `Run ${run.id} (${run.workflow}) is ${status}`);
}

/** What every message says of its run. */
export function publishedRunOf(run: RunSpec): PublishedRun {
  const { id: runId, workflow, queue, parentId, tags } = run;
  return { runId, workflow, version: versionOf(run), queue, parentId, hero: heroOf(run), tags };
}

const heroOf = ({ heroType: type, heroId: id }: RunSpec): PublishedRun["hero"] =>
  type === null || id === null ? null : { type, id };

const versionOf = ({ version }: RunSpec) => (version === frozenDagVersion ? "" : version);
