/** Turns the row of a run into the `RunInfo` that users get, with decoded payloads. */

import { decode } from "../../core/encoding/decode.js";
import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { DamagedDataError } from "../../core/errors/errors.js";
import { executionId } from "../../core/naming/ids.js";
import { frozenDagVersion } from "../../core/naming/route.js";
import { fingerprintIn } from "../../core/run/fingerprint.js";
import { retriedRunIdOf } from "../../core/run/lineage.js";
import { parseParkingNote, readParkingNote } from "../../core/run/parking-note.js";
import type { ParkingNote, Waiting } from "../../core/run/stored-schema.js";
import { type ScheduleContext, toScheduleContext } from "../../define/schedule/schedule-context.js";
import type { RunRecord, RunStatus } from "../../store/contract/store.js";
import { originOf } from "../start/start-origin.js";
import { type DamagedField, damagedColumnError, decodeColumn } from "./damaged-data.js";
import { type GatheredInfo, gatheredInfoOf } from "./gathered.js";

/** A run, as `run.get()` and `pawl.runs()` return it. */
export interface RunInfo<Input = unknown, Output = unknown> {
  /** The id of the run. */
  readonly id: string;
  /** The name of its workflow. */
  readonly workflow: string;
  /** The version of its workflow; "" if it has none. */
  readonly version: string;
  /** The queue of its workflow. */
  readonly queue: string;
  /** Its priority: workers claim runs with a higher priority first. */
  readonly priority: number;
  /** Its status. */
  readonly status: RunStatus;
  /** Its hero; null if it has none. */
  readonly hero: {
    /** The kind of hero. */
    readonly type: string;
    /** The id of the hero. */
    readonly id: string;
  } | null;
  /** The input that it was started with. */
  readonly input: Input;
  /** Its output; null unless it is completed. */
  readonly output: Output | null;
  /** Why it failed, or the reason why it was canceled; otherwise null. */
  readonly error: Error | null;
  /** The step that threw the error which failed or paused the run; null if no step did. */
  readonly failedStep: string | null;
  /** Identifies errors that are alike: the same step and class, and messages that differ only in ids and numbers. */
  readonly fingerprint: string | null;
  /** The tags of its workflow and of its start. */
  readonly tags: readonly string[];
  /** The idempotency key that it was started with; null if there was none. */
  readonly idempotencyKey: string | null;
  /** The id of the run that started it as a child; null if it is no child. */
  readonly parentId: string | null;
  /** The id of the run that it retries; null if it is no retry. */
  readonly retryOf: string | null;
  /** Who started it and why, as `start(…, { by, reason })` said; null if that is not known. */
  readonly startedBy: {
    /** Who started it; null if that is not known. */
    readonly by: string | null;
    /** Why it was started; null if no reason was given. */
    readonly reason: string | null;
  } | null;
  /** The run for whose end it had to wait, because that run had its key or hero (`onConflict`); null if there is none. */
  readonly startsAfter: string | null;
  /** The occurrence of a schedule that it was started for; null if no schedule has started it. */
  readonly schedule: ScheduleContext | null;
  /** The starts that it has gathered, by `debounce` or by the `batch` of its workflow; null if it has one start of its own. */
  readonly gathered: GatheredInfo | null;
  /** When it was created. */
  readonly createdAt: Date;
  /** When it started; null if it has not started. */
  readonly startedAt: Date | null;
  /** When it ended; null if it has not ended. */
  readonly finishedAt: Date | null;
  /** When it was paused; null if it is not paused. */
  readonly pausedAt: Date | null;
  /** When it was canceled; null if it was not. */
  readonly canceledAt: Date | null;
  /**
   * The current or next step of a run of a class whose steps are a chain; otherwise null. In `pawl.runs()` it is null also
   * for runs that have not started or are being executed.
   */
  readonly currentStep: string | null;
  /** The id of the execution of `currentStep`. */
  readonly currentExecution: string | null;
  /** What a parked run waits for. */
  readonly waitingFor: readonly Waiting[];
  /** Why the run is paused; null if it is not paused. */
  readonly pauseReason: string | null;
  /** The error that has paused the run, its message cut to 500 characters; null if no error did. */
  readonly pauseError: {
    /** The name of the error's class. */
    readonly name: string;
    /** The message of the error. */
    readonly message: string;
  } | null;
  /** Why no worker executes a run that is due. `runs({ explain: true })` sets it for all runs that have not ended. */
  readonly explanation: string | null;
  /**
   * The fields that `pawl.runs()` could not read; they are null or empty here. `get()` throws the first of these errors
   * instead.
   */
  readonly damaged: readonly DamagedField[];
}

type StepPosition = { readonly name: string; readonly attempt: number } | null;

/** @param position the current step, if the caller found it in the log because the row does not contain it */
export function toRunInfo(run: RunRecord, position: StepPosition = null): RunInfo<any, any> {
  const damagedFields: DamagedField[] = [];
  const read = <T>(field: string, work: () => T, fallback: T): T => {
    try {
      return work();
    } catch (error) {
      damagedFields.push({ field, error: error as DamagedDataError });
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
    ...errorPlace(run, note),
    tags: run.tags,
    idempotencyKey: run.startKey,
    parentId: run.parentId,
    retryOf: retriedRunIdOf(run),
    startedBy: startedByOf(run),
    startsAfter: originOf(run).after ?? null,
    schedule: scheduleOf(run),
    gathered: gatheredInfoOf(run),
    createdAt: new Date(run.createdAt),
    startedAt: run.startedAt === null ? null : new Date(run.startedAt),
    finishedAt: run.finishedAt === null ? null : new Date(run.finishedAt),
    pausedAt: run.status === "paused" && note.pausedAt !== undefined ? new Date(note.pausedAt) : null,
    canceledAt: run.status === "canceled" && run.finishedAt !== null ? new Date(run.finishedAt) : null,
    currentStep: step?.name ?? null,
    currentExecution: step === null ? null : executionId(run.id, step.name, step.attempt),
    waitingFor: note.waitingFor,
    pauseReason: run.status === "paused" ? (note.paused ?? null) : null,
    pauseError: pauseErrorOf(run, note),
    explanation: null,
    damaged:
      damagedFields.length === 0 ? noDamage : damagedFields.map((damage) => ({ ...damage, field: fieldOf(damage) })),
  };
}

/** A damaged text is reported elsewhere, so it counts as one without a fingerprint here. */
function errorPlace(run: RunRecord, note: ParkingNote): Pick<RunInfo, "failedStep" | "fingerprint"> {
  if (run.status === "paused") return { failedStep: note.error?.step ?? null, fingerprint: note.fingerprint ?? null };
  if (run.status !== "failed") return { failedStep: null, fingerprint: null };
  return { failedStep: failedStepIn(run.error), fingerprint: fingerprintIn(run.error) };
}

function pauseErrorOf({ status }: RunRecord, { error }: ParkingNote): RunInfo["pauseError"] {
  return status !== "paused" || error === undefined ? null : { name: error.name, message: error.message };
}

function failedStepIn(error: string | null): string | null {
  try {
    return error === null ? null : ((decode(error) as Failure).step ?? null);
  } catch {
    return null;
  }
}

function startedByOf(run: RunRecord): RunInfo["startedBy"] {
  const { by = null, reason = null } = originOf(run);
  return by === null && reason === null ? null : { by, reason };
}

/** Also only for display. */
function scheduleOf({ schedule }: RunRecord): RunInfo["schedule"] {
  try {
    return toScheduleContext(schedule);
  } catch {
    return null;
  }
}

const noDamage: readonly DamagedField[] = [];

/** `checkRowReadable` reports every unreadable column under "status", so the name of the column comes from its error. */
const fieldOf = ({ field, error }: DamagedField): string => (field === "status" ? error.column : field);

function checkRowReadable({ id, damage }: RunRecord): void {
  if (damage !== undefined) throw new DamagedDataError({ runId: id, ...damage });
}

/** @throws DamagedDataError if a field of the run's row could not be read */
export function checkUndamaged<I, O>(info: RunInfo<I, O>): RunInfo<I, O> {
  const [firstDamage] = info.damaged;
  if (firstDamage !== undefined) throw firstDamage.error;
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

/** @throws DamagedDataError if the note cannot be read */
export function parkingNoteOf(run: Pick<RunRecord, "id" | "waiting">): ParkingNote {
  try {
    return parseParkingNote(run.waiting);
  } catch (error) {
    throw damagedColumnError(run.id, "waiting", error);
  }
}
