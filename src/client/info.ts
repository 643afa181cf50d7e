/** A run as its users see it: rows with their payloads decoded. */
import { decode } from "../core/codec.js";
import { type Failure, reviveFailure } from "../core/failure.js";
import { executionId } from "../core/ids.js";
import { frozenVersion } from "../core/route.js";
import type { Waiting } from "../core/waiting.js";
import type { RunRecord, RunStatus } from "../store/store.js";

export interface RunInfo<Input = unknown, Output = unknown> {
  readonly id: string;
  readonly workflow: string;
  readonly version: string;
  readonly queue: string;
  readonly priority: number;
  readonly status: RunStatus;
  readonly hero: { readonly type: string; readonly id: string } | null;
  readonly input: Input;
  readonly output: Output | null;
  /** Why it failed, or why it was canceled if a reason was given. */
  readonly error: Error | null;
  readonly tags: readonly string[];
  readonly idempotencyKey: string | null;
  readonly parentId: string | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly pausedAt: Date | null;
  readonly canceledAt: Date | null;
  /** Of a workflow class: the step that it is at, and the id of its execution. */
  readonly currentStep: string | null;
  readonly currentExecution: string | null;
  /** What a parked run waits for. */
  readonly waitingFor: readonly Waiting[];
  /** Why it is paused, while it is. */
  readonly pauseReason: string | null;
  /** Of a run that is due and that nobody executes: why, as far as `get()` could find out. */
  readonly explanation: string | null;
}

type Position = { readonly name: string; readonly attempt: number } | null;

/** @param at the step that a run in execution is at; of others the row knows it */
export function runInfo(run: RunRecord, at: Position = null): RunInfo<any, any> {
  const note = readWaiting(run.waiting);
  const isParked = run.status === "waiting" || run.status === "paused";
  const step = isParked ? (note.step ?? null) : at;
  return {
    id: run.id,
    workflow: run.workflow,
    version: run.version === frozenVersion ? "" : run.version,
    queue: run.queue,
    priority: run.priority,
    status: run.status,
    hero: run.heroType === null || run.heroId === null ? null : { type: run.heroType, id: run.heroId },
    input: decode(run.input),
    output: run.output === null ? null : decode(run.output),
    error: errorOf(run),
    tags: run.tags,
    idempotencyKey: run.startKey,
    parentId: run.parentId,
    createdAt: new Date(run.createdAt),
    startedAt: run.startedAt === null ? null : new Date(run.startedAt),
    finishedAt: run.finishedAt === null ? null : new Date(run.finishedAt),
    pausedAt: run.status === "paused" && note.pausedAt !== undefined ? new Date(note.pausedAt) : null,
    canceledAt: run.status === "canceled" && run.finishedAt !== null ? new Date(run.finishedAt) : null,
    currentStep: step?.name ?? null,
    currentExecution: step === null ? null : executionId(run.id, step.name, step.attempt),
    waitingFor: note.for,
    pauseReason: run.status === "paused" ? (note.paused ?? null) : null,
    explanation: null,
  };
}

export function errorOf(run: Pick<RunRecord, "error">): Error | null {
  return run.error === null ? null : reviveFailure(decode(run.error) as Failure);
}

/** What the worker that parked the run noted about it. */
export interface WaitingNote {
  /** How much news its code had seen; -1 when it was interrupted in the middle. */
  readonly news: number;
  readonly for: readonly Waiting[];
  /** Why it is paused. */
  readonly paused?: string;
  readonly pausedAt?: number;
  /** The declared step that it is at. */
  readonly step?: { readonly name: string; readonly attempt: number };
}

export function readWaiting(text: string | null): WaitingNote {
  try {
    return { news: -1, for: [], ...(JSON.parse(text ?? "{}") as Partial<WaitingNote>) };
  } catch {
    return { news: -1, for: [] };
  }
}
