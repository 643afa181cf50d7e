/** The spans of steps: what each attempt waited for, how long it was in the queue, and its execution. */
import { isCompensation } from "../../../core/run/compensation.js";
import { dataOf, type StoredEvent } from "../../../core/run/event.js";
import { readStepFacts } from "../../../core/run/step-completed.js";
import type { ExecutionInfo } from "../executions.js";
import { type MutableSpan, minQueueMs, newSpan, splitAtDue, type WaitCause } from "./rows.js";

export interface StepRow {
  readonly key: string;
  readonly kind: "step" | "compensation";
  readonly firstSeq: number;
  readonly spans: MutableSpan[];
  state: ExecutionInfo["state"];
  attempts: number;
}

/** What the events tell about attempts and `ExecutionInfo` does not. */
interface AttemptFacts {
  /** When the attempt was planned, and what for. */
  plannedAt?: number;
  cause?: WaitCause;
  /** When the attempt was handed to a run of its own. */
  dispatchedAt?: number;
  /** How long the code ran. */
  ms?: number;
}

const attemptKey = (node: string, attempt: number) => `${attempt} ${node}`;

/** Notes, in the order of the log, what `stepRowsOf` needs to know about attempts. */
export class AttemptNotes {
  readonly firstSeqs = new Map<string, number>();
  readonly #facts = new Map<string, AttemptFacts>();

  of(node: string, attempt: number): AttemptFacts {
    return this.#facts.get(attemptKey(node, attempt)) ?? {};
  }

  addEvent(event: StoredEvent): void {
    const { node, at, seq } = event;
    if (node === null || !/^(step|node)\./.test(event.type)) return;
    if (!this.firstSeqs.has(node)) this.firstSeqs.set(node, seq);
    const attempt = event.attempt ?? 1;
    switch (event.type) {
      case "step.scheduled":
        return this.#note(node, attempt, { plannedAt: at, cause: "step" });
      case "node.dispatched":
        return this.#note(node, attempt, { dispatchedAt: at });
      case "step.completed": {
        const { ms } = readStepFacts(event.data);
        return ms === undefined ? undefined : this.#note(node, attempt, { ms });
      }
      case "step.failed":
      case "step.reattempted": {
        const { ms } = dataOf(event, "step.failed");
        if (ms !== undefined) this.#note(node, attempt, { ms });
        return this.#note(node, attempt + 1, { plannedAt: at, cause: "retry" });
      }
    }
  }

  #note(node: string, attempt: number, facts: AttemptFacts): void {
    const key = attemptKey(node, attempt);
    this.#facts.set(key, { ...this.#facts.get(key), ...facts });
  }
}

interface StepContext {
  readonly notes: AttemptNotes;
  /** A run does not begin before this instant: what its log has of earlier times is inherited from the run that it retries. */
  readonly createdAt: number;
  /** When the last event happened before `until`, for a next step that has no event yet. */
  readonly lastEventAt: number;
  readonly lastSeq: number;
  readonly until: number;
  readonly isPaused: boolean;
}

export function stepRowsOf(executions: readonly ExecutionInfo[], context: StepContext): Map<string, StepRow> {
  const rows = new Map<string, StepRow>();
  for (const execution of executions) {
    const { node, state, attempt } = execution;
    let row = rows.get(node);
    if (row === undefined) {
      const firstSeq = context.notes.firstSeqs.get(node) ?? context.lastSeq + 1;
      const kind = isCompensation(node) ? "compensation" : "step";
      rows.set(node, (row = { key: node, kind, firstSeq, spans: [], state, attempts: attempt }));
    }
    row.state = state;
    row.attempts = attempt;
    row.spans.push(...spansOf(execution, context));
  }
  return rows;
}

function spansOf(execution: ExecutionInfo, context: StepContext): MutableSpan[] {
  const facts = context.notes.of(execution.node, execution.attempt);
  return [...plannedSpans(execution, facts, context), ...executionSpans(execution, facts, context)];
}

/** The wait for the time of the attempt and, after it, the time in the queue. */
function plannedSpans(execution: ExecutionInfo, facts: AttemptFacts, context: StepContext): MutableSpan[] {
  const { attempt, startedAt, finishedAt } = execution;
  const dueAt = execution.scheduledFor?.getTime() ?? null;
  if (dueAt === null) return [];
  const isOpen = execution.state === "scheduled";
  const plannedAt = facts.plannedAt ?? Math.min(dueAt, context.lastEventAt);
  const to = isOpen ? null : ((startedAt ?? finishedAt)?.getTime() ?? null);
  const state = isOpen ? "scheduled" : startedAt === null ? "canceled" : "completed";
  const waitsFor = facts.cause ?? (attempt > 1 ? "retry" : "step");
  // A worker that retries at once records the end of one attempt and the start of the next at almost the same time.
  if (to !== null && to - plannedAt < minQueueMs) return [];
  const wait = newSpan({ kind: "wait", waitsFor, state, attempt, from: plannedAt, to, dueAt });
  // A paused run is in no queue.
  return isOpen && context.isPaused
    ? [wait]
    : splitAtDue(wait, dueAt, context.until).filter(({ from, to }) => from !== to);
}

function executionSpans(execution: ExecutionInfo, facts: AttemptFacts, context: StepContext): MutableSpan[] {
  const { attempt, worker, outcome, startedAt, finishedAt } = execution;
  const state = execution.state;
  const to = finishedAt?.getTime() ?? null;
  const from = startedAt?.getTime() ?? null;
  const common = { kind: "execution", state, attempt, worker, outcome } as const;
  // A step that was skipped or canceled before it started is a mark on the line.
  if (from === null)
    return to === null || execution.scheduledFor !== null ? [] : [newSpan({ ...common, from: to, to })];
  if (to !== null && from < context.createdAt) return [newSpan({ ...common, outcome: "inherited", from: to, to })];
  const { dispatchedAt, ms } = facts;
  if (dispatchedAt === undefined || ms === undefined || to === null) return [newSpan({ ...common, from, to })];
  // The run of the job was in a queue of its own before its code ran for `ms`.
  const beganAt = Math.max(from, to - ms);
  if (beganAt - from < minQueueMs) return [newSpan({ ...common, from, to })];
  return [
    newSpan({ kind: "queue", state: "completed", attempt, from, to: beganAt }),
    newSpan({ ...common, from: beganAt, to }),
  ];
}
