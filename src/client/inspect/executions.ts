/** Step executions: each attempt at each step, computed from the log. */

import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { executionId } from "../../core/naming/ids.js";
import { dataOf } from "../../core/run/event.js";
import type { NextStep } from "../../core/run/waiting.js";
import type { StoredEvent } from "../../store/contract/store.js";

export interface ExecutionInfo {
  readonly id: string;
  /** The name of the step, or of the node of a graph. */
  readonly step: string;
  /** By what the log knows it: of a node of a graph that was built at run time its id, else the same as `step`. */
  readonly node: string;
  readonly attempt: number;
  /**
   * The name of the worker that ran it, if its log says so: that is written with the start of an execution that takes more
   * than 100 ms, and with a failure. null for those that were quicker, and for nodes that run a job: the run of the job knows.
   */
  readonly worker: string | null;
  readonly state: "scheduled" | "executing" | "completed" | "failed" | "canceled" | "skipped";
  /** Why it ended; null while it has not. */
  readonly outcome: string | null;
  /** When it was to begin, if it had to wait. */
  readonly scheduledFor: Date | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly error: Error | null;
  /** Of a completed execution of a node: SHA-256 over its id, attempt and output, and the hashes of what it comes after. */
  readonly ancestryHash: string | null;
  /** The execution of the same step before this one, and the one after it. */
  readonly continuesFrom: string | null;
  readonly successor: string | null;
}

type MutableExecution = { -readonly [Field in keyof ExecutionInfo]: ExecutionInfo[Field] };

/** @param next the step that the run comes to next, of which the log has nothing yet */
export function executionsOf(
  runId: string,
  log: readonly StoredEvent[],
  next: NextStep | null = null,
): ExecutionInfo[] {
  const builder = new ExecutionsBuilder(runId);
  for (const event of log) builder.addEvent(event);
  return builder.build(next);
}

/** An attempt that is certain to come, but for which the log has no event yet. */
interface PlannedAttempt {
  readonly step: string;
  readonly attempt: number;
  scheduledFor: number;
  /** The run is paused because of the attempt before it: it is planned when an operator resumes. */
  isBlockedByPause: boolean;
  /** It was at some time: then a cancel of the run does not cancel this. */
  wasBlockedByPause: boolean;
}

class ExecutionsBuilder {
  readonly #runId: string;
  readonly #executions: MutableExecution[] = [];
  /** The latest of each step. */
  readonly #latestByStep = new Map<string, MutableExecution>();
  readonly #planned = new Map<string, PlannedAttempt>();
  /** Those whose end is in the log. One that counts as abandoned has none, and may still get it. */
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
    for (const { step, attempt, scheduledFor, isBlockedByPause } of this.#planned.values()) {
      if (!isBlockedByPause) this.#addExecution(step, attempt).scheduledFor = new Date(scheduledFor);
    }
    this.#planned.clear();
  }

  addEvent(event: StoredEvent): void {
    switch (event.type) {
      case "run.recovered":
        return this.#abandon(event.at, (draft) => !this.#dispatchedElsewhere.has(draft));
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

  /** Others execute it: the death of the run's own worker is not its death. */
  #onDispatched(event: StoredEvent, step: string): void {
    const execution = this.#executionOf(step, event.attempt ?? 1);
    execution.state = "executing";
    execution.startedAt = new Date(event.at);
    this.#dispatchedElsewhere.add(execution);
  }

  #onReopened(event: StoredEvent, step: string): void {
    const attempt = (event.attempt ?? 0) + 1;
    // Another operator had it reopened at the same moment, and it has begun.
    if ((this.#latestByStep.get(step)?.attempt ?? 0) >= attempt) return;
    this.#planned.set(step, {
      step,
      attempt,
      scheduledFor: event.at,
      isBlockedByPause: false,
      wasBlockedByPause: false,
    });
  }

  #onStepEvent(event: StoredEvent, step: string, attempt: number): void {
    const execution = this.#executionOf(step, attempt);
    // The first end stands: a body may still come to its own when its step was passed over.
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
    // What an operator or the code passed over never ran.
    if (data.by === undefined) execution.startedAt = earliest(execution.startedAt, event.at - (data.ms ?? 0));
    execution.finishedAt = new Date(event.at);
    execution.worker = data.worker ?? execution.worker;
    if (event.type === "step.completed") execution.ancestryHash = data.hash ?? null;
    execution.error = data.error === undefined ? null : reviveFailure(data.error);
    const waitMs = data.retryMs ?? data.waitMs;
    if (waitMs !== undefined)
      this.#planned.set(step, {
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
    const planned = this.#planned.get(step);
    const execution = this.#addExecution(step, attempt);
    if (planned?.attempt === attempt) execution.scheduledFor = new Date(planned.scheduledFor);
    this.#planned.delete(step);
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
    const planned = step === null ? undefined : this.#planned.get(step);
    if (planned !== undefined) planned.isBlockedByPause = planned.wasBlockedByPause = true;
  }

  #unblockPlanned(at: number): void {
    for (const planned of this.#planned.values()) {
      if (!planned.isBlockedByPause) continue;
      planned.isBlockedByPause = false;
      planned.scheduledFor = at;
    }
  }

  /** What was to come does not come any more, and what comes now continues nothing. */
  #startOver(at: number): void {
    this.#cancelScheduled(at);
    this.#latestByStep.clear();
  }

  #cancelScheduled(at: number): void {
    for (const [step, planned] of this.#planned) if (planned.wasBlockedByPause) this.#planned.delete(step);
    this.#addPlanned();
    for (const execution of this.#executions)
      if (execution.state === "scheduled") finish(execution, "canceled", "canceled_by_flow_control", at);
  }

  #end(event: StoredEvent): void {
    this.#cancelScheduled(event.at);
    // However the run ended: its worker has not died, it does not wait for them any more.
    for (const execution of this.#executions)
      if (execution.state === "executing") finish(execution, "canceled", "canceled_by_flow_control", event.at);
  }
}

/** The start of a step that takes long is recorded late; its end knows how long it took, but for one that has rested. */
function earliest(recorded: Date | null, computedStartAt: number): Date {
  return recorded !== null && recorded.getTime() <= computedStartAt ? recorded : new Date(computedStartAt);
}

function finish(execution: MutableExecution, state: ExecutionInfo["state"], outcome: string, at: number): void {
  execution.state = state;
  execution.outcome = outcome;
  execution.finishedAt = new Date(at);
}

/** How an execution ended is mostly the event's type; where an outcome says more, the outcome counts. */
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
