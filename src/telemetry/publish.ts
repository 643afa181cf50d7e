/**
 * Publishes everything that becomes durable in this process: the events of runs on the channel `pawl:event`, their new
 * status on `pawl:run` (node:diagnostics_channel), and both to the log at level debug. Mostly there is no listener; then
 * a transition costs three comparisons.
 */
import { decode } from "../core/encoding/decode.js";
import { type Failure, reviveFailure } from "../core/encoding/error-record.js";
import { frozenDagVersion } from "../core/naming/route.js";
import type { NewEvent } from "../core/run/event.js";
import { terminalEventOf } from "../core/run/terminal-event.js";
import type { Logger } from "../define/context.js";
import type { NextTaskState, RunSpec, RunStatus } from "../store/contract/store.js";
import { discardLog } from "./logger.js";
import { safeChannel } from "./safe-channel.js";
import { isDebugEnabled, logWithFields } from "./safe-logger.js";

/** The run that a message is about. */
export interface PublishedRun {
  /** The id of the run. */
  readonly runId: string;
  /** The name of its workflow. */
  readonly workflow: string;
  /** The version of its workflow; empty if it has none. */
  readonly version: string;
  /** The queue that the run is in. */
  readonly queue: string;
  /** The run that started this one, or null if no run did. */
  readonly parentId: string | null;
  /** The hero that the run is about, or null if it has none. */
  readonly hero: {
    /** The type of the hero. */
    readonly type: string;
    /** The id of the hero, as text. */
    readonly id: string;
  } | null;
  /** The tags of the run. */
  readonly tags: readonly string[];
}

/** One event of a run's log, published on the channel `pawl:event` when it is durable. */
export interface RunEvent extends PublishedRun {
  /** The number of the event in the log of its run, from 1. */
  readonly seq: number;
  /** What happened: "step.completed", "run.paused" … */
  readonly type: string;
  /** The step, node or timer that the event is about, or null if it is about the run itself. */
  readonly node: string | null;
  /** The number of the attempt at the step, from 1; null for events that are about no attempt. */
  readonly attempt: number | null;
  /** How the attempt ended: "success", "timed_out" …; null for events that end no attempt. */
  readonly outcome: string | null;
  /** The data of the event as it is stored: encoded text. */
  readonly data: string | null;
  /** The store's time, in epoch milliseconds. */
  readonly at: number;
}

/** The new status of a run, published on the channel `pawl:run` when it is durable. */
export interface RunStatusChange extends PublishedRun {
  /** The status that the run has from now on. */
  readonly status: RunStatus;
  /** The store's time, in epoch milliseconds. */
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
}

/** Publishes a commit: the events after number `afterSeq`, the new children, and the new status of the run. */
export function publishCommit(log: Logger, run: RunSpec, change: CommittedChange): void {
  const { events, afterSeq, at, next, newChildren } = change;
  if (hasStatusListeners(log)) for (const child of newChildren) emitStatus(log, child, "pending", at);
  if (hasEventListeners(log)) {
    for (const [index, event] of events.entries()) emitEvent(log, run, event, afterSeq + 1 + index, at);
    const lastSeq = afterSeq + events.length;
    const terminalEvent = next.kind === "finish" ? terminalEventOf({ ...next, finishedAt: at }, lastSeq) : null;
    if (terminalEvent !== null) emitEvent(log, run, terminalEvent, terminalEvent.seq, terminalEvent.at);
  }
  if (next.kind !== "keep" && hasStatusListeners(log)) emitStatus(log, run, next.status, at);
  if (next.kind === "finish" && next.status === "failed") logFailure(log, run, next.error);
}

/** The failure of a child is logged at level info only, because its parent decides what the failure means. */
function logFailure(log: Logger, run: RunSpec, encodedError: string | null): void {
  const level = run.parentId === null ? "warn" : "info";
  if (log[level] === discardLog) return;
  const failure = encodedError === null ? null : (decode(encodedError) as Failure);
  const step = failure?.step ?? null;
  const error = failure === null ? undefined : reviveFailure(failure);
  const reasonText = error === undefined ? "." : `: ${error.message}`;
  const stepText = step === null ? "" : ` at step "${step}"`;
  const fields = { ...runLogFields(run), ...(step === null ? {} : { step }) };
  logWithFields(log, level, fields, `Run ${run.id} (${run.workflow}) failed${stepText}${reasonText}`, error);
}

/**
 * Logs that a run is paused, because it waits for an operator from now on. A pause by `ctx.pause()`, a `PauseError` or an
 * operator is no reason for a warning; a pause by any other error is.
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

/** Publishes that a run was created, or that a worker executes it from now on. */
export function publishStatus(log: Logger, run: RunSpec, status: "pending" | "running", at: number): void {
  if (hasStatusListeners(log)) emitStatus(log, run, status, at);
}

function emitEvent(log: Logger, run: RunSpec, event: NewEvent, seq: number, at: number): void {
  const { type, node, attempt, outcome, data } = event;
  if (eventChannel.hasSubscribers) {
    const { id: runId, workflow, queue, parentId, tags } = run;
    // The fields are listed one by one, because spreading `publishedRunOf(run)` would cost more than the rest of this
    // function.
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

/** Returns the fields of a message that describe its run. */
export function publishedRunOf(run: RunSpec): PublishedRun {
  const { id: runId, workflow, queue, parentId, tags } = run;
  return { runId, workflow, version: versionOf(run), queue, parentId, hero: heroOf(run), tags };
}

const heroOf = ({ heroType: type, heroId: id }: RunSpec): PublishedRun["hero"] =>
  type === null || id === null ? null : { type, id };

const versionOf = ({ version }: RunSpec) => (version === frozenDagVersion ? "" : version);
