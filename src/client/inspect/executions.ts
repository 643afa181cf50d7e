/** Step executions: each attempt at each step, computed from the log. */

import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { executionId } from "../../core/naming/ids.js";
import { dataOf } from "../../core/run/event.js";
import type { NextStep } from "../../core/run/waiting.js";
import type { StoredEvent } from "../../store/contract/store.js";

/** One attempt at a step, as `run.executions()` returns it. */
export interface ExecutionInfo {
  /** The id of the execution. */
  readonly id: string;
  /** The name of the step, or of the node of a graph. */
  readonly step: string;
  /** The key in the log: the id of a node of a built graph, otherwise the same as `step`. */
  readonly node: string;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /**
   * The name of the worker that ran the execution. The log has the name only for executions that took more than 100 ms or
   * failed. Otherwise null, also for a node that runs a job, because the job is a run of its own.
   */
  readonly worker: string | null;
  /** The state of the execution. */
  readonly state: "scheduled" | "executing" | "completed" | "failed" | "canceled" | "skipped";
  /** How it ended, such as "success" or "timed_out"; null while it has not ended. */
  readonly outcome: string | null;
  /** The time that the execution was scheduled for; null if it did not have to wait. */
  readonly scheduledFor: Date | null;
  /** When the execution started; null if it has not started. */
  readonly startedAt: Date | null;
  /** When the execution ended; null if it has not ended. */
  readonly finishedAt: Date | null;
  /** The exception that ended the execution; null if there was none. */
  readonly error: Error | null;
  /**
   * For a completed step of a class or graph: a SHA-256 over its id, attempt and output and the hashes of its
   * predecessors. Otherwise null.
   */
  readonly ancestryHash: string | null;
  /** The id of the previous execution of the same step; null if there is none. */
  readonly continuesFrom: string | null;
  /** The id of the next execution of the same step; null if there is none. */
  readonly successor: string | null;
}

type MutableExecution = { -readonly [Field in keyof ExecutionInfo]: ExecutionInfo[Field] };

/** @param next the next step of the run, if the log has no event of that step yet; otherwise null */
export function executionsOf(
  runId: string,
  log: readonly StoredEvent[],
  next: NextStep | null = null,
): ExecutionInfo[] {
  const builder = new ExecutionsBuilder(runId);
  for (const event of log) builder.addEvent(event);
  return builder.build(next);
}

/** An attempt that will follow, but for which the log has no event yet. */
interface PlannedAttempt {
  readonly step: string;
  readonly attempt: number;
  scheduledFor: number;
  /** The previous attempt paused the run, so this attempt is scheduled only when an operator resumes the run. */
  isBlockedByPause: boolean;
  /**
   * Whether `isBlockedByPause` was ever true. If so, the attempt is not listed when the run ends or starts over; other
   * planned attempts are then listed as canceled.
   */
  wasBlockedByPause: boolean;
}

class ExecutionsBuilder {
  readonly #runId: string;
  readonly #executions: MutableExecution[] = [];
  /** The latest execution of each step. */
  readonly #latestByStep = new Map<string, MutableExecution>();
  readonly #plannedByStep = new Map<string, PlannedAttempt>();
  /**
   * Executions whose end is in the log. An abandoned execution is not among them: its worker seemed dead, but may still
   * record the end of the step.
   */
  readonly #endedInLog = new Set<MutableExecution>();
  readonly #dispatchedElsewhere = new Set<MutableExecution>();

  constructor(runId: string) {
    this.#runId = runId;
  }

  build(next: NextStep | null): ExecutionInfo[] {
    this.#addPlanned();
    if (next !== null) {
      const execution = this.#addExecution(next.name, next.attempt);
      execution.scheduledFor = next.dueAt === null ? null : new Date(next.dueAt);
    }
    return this.#executions;
  }

  #addPlanned(): void {
    for (const { step, attempt, scheduledFor, isBlockedByPause } of this.#plannedByStep.values()) {
      if (!isBlockedByPause) this.#addExecution(step, attempt).scheduledFor = new Date(scheduledFor);
    }
    this.#plannedByStep.clear();
  }

  addEvent(event: StoredEvent): void {
    switch (event.type) {
      case "run.recovered":
        return this.#abandon(event.at, (execution) => !this.#dispatchedElsewhere.has(execution));
      case "run.paused":
        return this.#blockPlanned(event.node);
      case "run.resumed":
        return this.#unblockPlanned(event.at);
      case "run.moved":
        return this.#startOver(event.at);
      case "run.reattempted":
        return dataOf(event, "run.reattempted").rewind ? this.#startOver(event.at) : undefined;
      case "run.completed":
      case "run.failed":
      case "run.canceled":
        return this.#end(event);
    }
    if (event.type === "node.dispatched" && event.node !== null) this.#onDispatched(event, event.node);
    if (event.type === "node.reopened" && event.node !== null) this.#onReopened(event, event.node);
    if (event.type.startsWith("step.") && event.node !== null) this.#onStepEvent(event, event.node, event.attempt ?? 1);
  }

  /** Another worker may execute the node, so the execution is not abandoned when the worker that owns the run dies. */
  #onDispatched(event: StoredEvent, step: string): void {
    const execution = this.#executionOf(step, event.attempt ?? 1);
    execution.state = "executing";
    execution.startedAt = new Date(event.at);
    this.#dispatchedElsewhere.add(execution);
  }

  #onReopened(event: StoredEvent, step: string): void {
    const attempt = (event.attempt ?? 0) + 1;
    // Another operator reopened the node at the same time, and the new attempt has already started.
    if ((this.#latestByStep.get(step)?.attempt ?? 0) >= attempt) return;
    this.#plannedByStep.set(step, {
      step,
      attempt,
      scheduledFor: event.at,
      isBlockedByPause: false,
      wasBlockedByPause: false,
    });
  }

  #onStepEvent(event: StoredEvent, step: string, attempt: number): void {
    const execution = this.#executionOf(step, attempt);
    // Later events of an ended execution are ignored: the body of a skipped step may still be running and end by itself.
    if (this.#endedInLog.has(execution)) return;
    if (event.type === "step.scheduled") {
      execution.scheduledFor = new Date(event.at + dataOf(event, "step.scheduled").waitMs);
      return;
    }
    if (event.type === "step.started") {
      execution.state = "executing";
      execution.startedAt = earliest(execution.startedAt, event.at);
      execution.worker = dataOf(event, "step.started").worker ?? null;
      return;
    }
    const data = dataOf(event, "step.failed") as {
      ms?: number;
      error?: Failure;
      retryMs?: number;
      waitMs?: number;
      by?: string;
      hash?: string;
      worker?: string;
    };
    this.#endedInLog.add(execution);
    execution.state = stateOf(event);
    execution.outcome = event.outcome;
    // `by` is set if an operator or the code skipped the step. Such a step never ran, so it has no start.
    if (data.by === undefined) execution.startedAt = earliest(execution.startedAt, event.at - (data.ms ?? 0));
    execution.finishedAt = new Date(event.at);
    execution.worker = data.worker ?? execution.worker;
    if (event.type === "step.completed") execution.ancestryHash = data.hash ?? null;
    execution.error = data.error === undefined ? null : reviveFailure(data.error);
    const waitMs = data.retryMs ?? data.waitMs;
    if (waitMs !== undefined)
      this.#plannedByStep.set(step, {
        step,
        attempt: attempt + 1,
        scheduledFor: event.at + waitMs,
        isBlockedByPause: false,
        wasBlockedByPause: false,
      });
  }

  #executionOf(step: string, attempt: number): MutableExecution {
    const latest = this.#latestByStep.get(step);
    if (latest?.attempt === attempt) return latest;
    const plannedAttempt = this.#plannedByStep.get(step);
    const execution = this.#addExecution(step, attempt);
    if (plannedAttempt?.attempt === attempt) execution.scheduledFor = new Date(plannedAttempt.scheduledFor);
    this.#plannedByStep.delete(step);
    return execution;
  }

  #addExecution(step: string, attempt: number): MutableExecution {
    const previous = this.#latestByStep.get(step);
    const execution: MutableExecution = {
      id: executionId(this.#runId, step, attempt),
      step,
      node: step,
      attempt,
      worker: null,
      state: "scheduled",
      outcome: null,
      scheduledFor: null,
      startedAt: null,
      finishedAt: null,
      error: null,
      ancestryHash: null,
      continuesFrom: previous?.id ?? null,
      successor: null,
    };
    if (previous !== undefined) previous.successor = execution.id;
    this.#latestByStep.set(step, execution);
    this.#executions.push(execution);
    return execution;
  }

  #abandon(at: number, isLost: (execution: MutableExecution) => boolean = () => true): void {
    for (const execution of this.#executions)
      if (execution.state === "executing" && isLost(execution)) finish(execution, "failed", "abandoned", at);
  }

  #blockPlanned(step: string | null): void {
    const plannedAttempt = step === null ? undefined : this.#plannedByStep.get(step);
    if (plannedAttempt !== undefined) plannedAttempt.isBlockedByPause = plannedAttempt.wasBlockedByPause = true;
  }

  #unblockPlanned(at: number): void {
    for (const planned of this.#plannedByStep.values()) {
      if (!planned.isBlockedByPause) continue;
      planned.isBlockedByPause = false;
      planned.scheduledFor = at;
    }
  }

  /** Cancels scheduled executions. The executions that follow are not linked to earlier executions of their steps. */
  #startOver(at: number): void {
    this.#cancelScheduled(at);
    this.#latestByStep.clear();
  }

  #cancelScheduled(at: number): void {
    for (const [step, planned] of this.#plannedByStep) if (planned.wasBlockedByPause) this.#plannedByStep.delete(step);
    this.#addPlanned();
    for (const execution of this.#executions)
      if (execution.state === "scheduled") finish(execution, "canceled", "canceled_by_flow_control", at);
  }

  #end(event: StoredEvent): void {
    this.#cancelScheduled(event.at);
    // The run ended without waiting for these executions. They are not "abandoned", because no worker died.
    for (const execution of this.#executions)
      if (execution.state === "executing") finish(execution, "canceled", "canceled_by_flow_control", event.at);
  }
}

/**
 * The start of a long step is recorded late, so the start that is computed from its duration may be earlier than the
 * recorded start.
 */
function earliest(recorded: Date | null, computedStartAt: number): Date {
  return recorded !== null && recorded.getTime() <= computedStartAt ? recorded : new Date(computedStartAt);
}

function finish(execution: MutableExecution, state: ExecutionInfo["state"], outcome: string, at: number): void {
  execution.state = state;
  execution.outcome = outcome;
  execution.finishedAt = new Date(at);
}

/** The state follows from the type of the event, except for three outcomes, which decide the state themselves. */
function stateOf({ type, outcome }: StoredEvent): ExecutionInfo["state"] {
  if (outcome === "workflow_paused") return "canceled";
  if (outcome === "skipped_by_exception" || outcome === "timed_out") return "failed";
  return stateByEventType[type] ?? "completed";
}

const stateByEventType: Record<string, ExecutionInfo["state"]> = {
  "step.completed": "completed",
  "step.failed": "failed",
  "step.skipped": "skipped",
  "step.canceled": "canceled",
  "step.reattempted": "completed",
};
