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

type Draft = { -readonly [Field in keyof ExecutionInfo]: ExecutionInfo[Field] };

/** @param next the step that the run comes to next, of which the log has nothing yet */
export function executionsOf(
  runId: string,
  log: readonly StoredEvent[],
  next: NextStep | null = null,
): ExecutionInfo[] {
  const found = new Executions(runId);
  for (const event of log) found.take(event);
  return found.all(next);
}

/** An attempt that is certain to come, but for which the log has no event yet. */
interface Planned {
  readonly step: string;
  readonly attempt: number;
  scheduledFor: number;
  /** The run is paused because of the attempt before it: it is planned when an operator resumes. */
  held: boolean;
  /** It was at some time: then a cancel of the run does not cancel this. */
  wasHeld: boolean;
}

class Executions {
  readonly #runId: string;
  readonly #drafts: Draft[] = [];
  /** The latest of each step. */
  readonly #latest = new Map<string, Draft>();
  readonly #planned = new Map<string, Planned>();
  /** Those whose end is in the log. One that counts as abandoned has none, and may still get it. */
  readonly #ended = new Set<Draft>();
  readonly #elsewhere = new Set<Draft>();

  constructor(runId: string) {
    this.#runId = runId;
  }

  all(next: NextStep | null): ExecutionInfo[] {
    this.#showPlanned();
    if (next !== null) {
      const draft = this.#begin(next.name, next.attempt);
      draft.scheduledFor = next.dueAt === null ? null : new Date(next.dueAt);
    }
    return this.#drafts;
  }

  #showPlanned(): void {
    for (const { step, attempt, scheduledFor, held } of this.#planned.values()) {
      if (!held) this.#begin(step, attempt).scheduledFor = new Date(scheduledFor);
    }
    this.#planned.clear();
  }

  take(event: StoredEvent): void {
    switch (event.type) {
      case "run.recovered":
        return this.#abandon(event.at, (draft) => !this.#elsewhere.has(draft));
      case "run.paused":
        return this.#hold(event.node);
      case "run.resumed":
        return this.#release(event.at);
      case "run.moved":
        return this.#startOver(event.at);
      case "run.reattempted":
        return dataOf(event, "run.reattempted").rewind ? this.#startOver(event.at) : undefined;
      case "run.completed":
      case "run.failed":
      case "run.canceled":
        return this.#end(event);
    }
    if (event.type === "node.dispatched" && event.node !== null) this.#dispatched(event, event.node);
    if (event.type === "node.reopened" && event.node !== null) this.#reopened(event, event.node);
    if (event.type.startsWith("step.") && event.node !== null) this.#step(event, event.node, event.attempt ?? 1);
  }

  /** Others execute it: the death of the run's own worker is not its death. */
  #dispatched(event: StoredEvent, step: string): void {
    const draft = this.#draftOf(step, event.attempt ?? 1);
    draft.state = "executing";
    draft.startedAt = new Date(event.at);
    this.#elsewhere.add(draft);
  }

  #reopened(event: StoredEvent, step: string): void {
    const attempt = (event.attempt ?? 0) + 1;
    // Another operator had it reopened at the same moment, and it has begun.
    if ((this.#latest.get(step)?.attempt ?? 0) >= attempt) return;
    this.#planned.set(step, { step, attempt, scheduledFor: event.at, held: false, wasHeld: false });
  }

  #step(event: StoredEvent, step: string, attempt: number): void {
    const draft = this.#draftOf(step, attempt);
    // The first end stands: a body may still come to its own when its step was passed over.
    if (this.#ended.has(draft)) return;
    if (event.type === "step.scheduled") {
      draft.scheduledFor = new Date(event.at + dataOf(event, "step.scheduled").waitMs);
      return;
    }
    if (event.type === "step.started") {
      draft.state = "executing";
      draft.startedAt = earlier(draft.startedAt, event.at);
      draft.worker = dataOf(event, "step.started").worker ?? null;
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
    this.#ended.add(draft);
    draft.state = stateOf(event);
    draft.outcome = event.outcome;
    // What an operator or the code passed over never ran.
    if (data.by === undefined) draft.startedAt = earlier(draft.startedAt, event.at - (data.ms ?? 0));
    draft.finishedAt = new Date(event.at);
    draft.worker = data.worker ?? draft.worker;
    if (event.type === "step.completed") draft.ancestryHash = data.hash ?? null;
    draft.error = data.error === undefined ? null : reviveFailure(data.error);
    const waitMs = data.retryMs ?? data.waitMs;
    if (waitMs !== undefined)
      this.#planned.set(step, {
        step,
        attempt: attempt + 1,
        scheduledFor: event.at + waitMs,
        held: false,
        wasHeld: false,
      });
  }

  #draftOf(step: string, attempt: number): Draft {
    const latest = this.#latest.get(step);
    if (latest?.attempt === attempt) return latest;
    const planned = this.#planned.get(step);
    const draft = this.#begin(step, attempt);
    if (planned?.attempt === attempt) draft.scheduledFor = new Date(planned.scheduledFor);
    this.#planned.delete(step);
    return draft;
  }

  #begin(step: string, attempt: number): Draft {
    const before = this.#latest.get(step);
    const draft: Draft = {
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
      continuesFrom: before?.id ?? null,
      successor: null,
    };
    if (before !== undefined) before.successor = draft.id;
    this.#latest.set(step, draft);
    this.#drafts.push(draft);
    return draft;
  }

  #abandon(at: number, isLost: (draft: Draft) => boolean = () => true): void {
    for (const draft of this.#drafts)
      if (draft.state === "executing" && isLost(draft)) finish(draft, "failed", "abandoned", at);
  }

  #hold(step: string | null): void {
    const planned = step === null ? undefined : this.#planned.get(step);
    if (planned !== undefined) planned.held = planned.wasHeld = true;
  }

  #release(at: number): void {
    for (const planned of this.#planned.values()) {
      if (!planned.held) continue;
      planned.held = false;
      planned.scheduledFor = at;
    }
  }

  /** What was to come does not come any more, and what comes now continues nothing. */
  #startOver(at: number): void {
    this.#cancelScheduled(at);
    this.#latest.clear();
  }

  #cancelScheduled(at: number): void {
    for (const [step, planned] of this.#planned) if (planned.wasHeld) this.#planned.delete(step);
    this.#showPlanned();
    for (const draft of this.#drafts)
      if (draft.state === "scheduled") finish(draft, "canceled", "canceled_by_flow_control", at);
  }

  #end(event: StoredEvent): void {
    this.#cancelScheduled(event.at);
    // However the run ended: its worker has not died, it does not wait for them any more.
    for (const draft of this.#drafts)
      if (draft.state === "executing") finish(draft, "canceled", "canceled_by_flow_control", event.at);
  }
}

/** The start of a step that takes long is recorded late; its end knows how long it took, but for one that has rested. */
function earlier(recorded: Date | null, begun: number): Date {
  return recorded !== null && recorded.getTime() <= begun ? recorded : new Date(begun);
}

function finish(draft: Draft, state: ExecutionInfo["state"], outcome: string, at: number): void {
  draft.state = state;
  draft.outcome = outcome;
  draft.finishedAt = new Date(at);
}

/** How an execution ended is mostly the event's type; where an outcome says more, the outcome counts. */
function stateOf({ type, outcome }: StoredEvent): ExecutionInfo["state"] {
  if (outcome === "workflow_paused") return "canceled";
  if (outcome === "skipped_by_exception" || outcome === "timed_out") return "failed";
  return states[type] ?? "completed";
}

const states: Record<string, ExecutionInfo["state"]> = {
  "step.completed": "completed",
  "step.failed": "failed",
  "step.skipped": "skipped",
  "step.canceled": "canceled",
  "step.reattempted": "completed",
};
