/** A run as its users see it: rows with their payloads decoded. */

import { decode } from "../../core/encoding/decode.js";
import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { DamagedDataError } from "../../core/errors/errors.js";
import { executionId } from "../../core/naming/ids.js";
import { frozenDagVersion } from "../../core/naming/route.js";
import { parseParkingNote, readParkingNote } from "../../core/run/parking-note.js";
import type { ParkingNote, Waiting } from "../../core/run/stored-schema.js";
import type { RunRecord, RunStatus } from "../../store/contract/store.js";
import { type DamagedField, damagedColumnError, decodeColumn } from "./damaged-data.js";

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
  /**
   * Of a workflow class that is a chain of steps: the step that the run is at or comes to next, and the id of its execution.
   * Lists do not know it of runs that have not begun, or are being executed.
   */
  readonly currentStep: string | null;
  readonly currentExecution: string | null;
  /** What a parked run waits for. */
  readonly waitingFor: readonly Waiting[];
  /** Why it is paused, while it is. */
  readonly pauseReason: string | null;
  /** Of a run that is due and that no worker executes: why, as far as `get()` could find out. */
  readonly explanation: string | null;
  /**
   * In a list: what of its row could not be read, which is null or empty here. Empty for every sound run. Reading such a
   * run alone throws the first of these errors.
   */
  readonly damaged: readonly DamagedField[];
}

type StepPosition = { readonly name: string; readonly attempt: number } | null;

/** @param position the step that the run is at, if its row does not know */
export function toRunInfo(run: RunRecord, position: StepPosition = null): RunInfo<any, any> {
  const damaged: DamagedField[] = [];
  const read = <T>(field: string, work: () => T, fallback: T): T => {
    try {
      return work();
    } catch (error) {
      damaged.push({ field, error: error as DamagedDataError });
      return fallback;
    }
  };
  read("status", () => checkRowReadable(run), undefined);
  const note = read("waitingFor", () => parkingNoteOf(run), readParkingNote(null));
  const isParked = run.status === "waiting" || run.status === "paused";
  const step = (isParked ? note.step : undefined) ?? position;
  return {
    id: run.id,
    workflow: run.workflow,
    version: run.version === frozenDagVersion ? "" : run.version,
    queue: run.queue,
    priority: run.priority,
    status: run.status,
    hero: run.heroType === null || run.heroId === null ? null : { type: run.heroType, id: run.heroId },
    input: read("input", () => decodeColumn(run, "input"), null),
    output: read("output", () => decodeColumn(run, "output"), null),
    error: read("error", () => errorOf(run), null),
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
    waitingFor: note.waitingFor,
    pauseReason: run.status === "paused" ? (note.paused ?? null) : null,
    explanation: null,
    damaged: damaged.length === 0 ? noDamage : damaged.map((one) => ({ ...one, field: fieldOf(one) })),
  };
}

const noDamage: readonly DamagedField[] = [];

/** The row says which column the store could not read. */
const fieldOf = ({ field, error }: DamagedField): string => (field === "status" ? error.column : field);

function checkRowReadable({ id, damage }: RunRecord): void {
  if (damage !== undefined) throw new DamagedDataError({ runId: id, ...damage });
}

/** @throws DamagedDataError when something of the run's row could not be read */
export function checkUndamaged<I, O>(info: RunInfo<I, O>): RunInfo<I, O> {
  const [first] = info.damaged;
  if (first !== undefined) throw first.error;
  return info;
}

export function errorOf(run: Pick<RunRecord, "id" | "error">): Error | null {
  if (run.error === null) return null;
  try {
    return reviveFailure(decode(run.error) as Failure);
  } catch (error) {
    throw damagedColumnError(run.id, "error", error);
  }
}

/** @throws DamagedDataError when it cannot be read */
export function parkingNoteOf(run: Pick<RunRecord, "id" | "waiting">): ParkingNote {
  try {
    return parseParkingNote(run.waiting);
  } catch (error) {
    throw damagedColumnError(run.id, "waiting", error);
  }
}
