/** Stored data that cannot be read back: whose it is, and where, so that one damaged row is one run's problem. */
import { decode } from "../../core/encoding/decode.js";
import { DamagedDataError, SerializationError } from "../../core/errors/errors.js";
import { fold } from "../../core/run/fold.js";
import type { RunState } from "../../core/run/state.js";
import type { RunRecord, StoredEvent } from "../../store/contract/store.js";

/** A field of a run that could not be read; the run has null in its place, or an empty list. */
export interface DamagedField {
  readonly field: string;
  readonly error: DamagedDataError;
}

export function damagedColumnError(runId: string, column: string, cause: unknown): DamagedDataError {
  return new DamagedDataError({ runId, column, problem: messageOf(cause) }, { cause });
}

/** @throws DamagedDataError that names the run and the column */
export function decodeColumn(run: RunRecord, column: "input" | "output"): unknown {
  const text = run[column];
  try {
    return text === null ? null : decode(text);
  } catch (error) {
    throw damagedColumnError(run.id, column, error);
  }
}

/** @throws DamagedDataError that names the run and the event */
export function foldLog(runId: string, log: Iterable<StoredEvent>): RunState {
  try {
    return fold(log);
  } catch (error) {
    throw toRunDamage(runId, error);
  }
}

/** For what is read from a log without folding it, which would notice a row that cannot be read. */
export function checkEventsReadable(runId: string, log: readonly StoredEvent[]): void {
  const unreadable = log.find(({ type }) => type === "batch");
  if (unreadable === undefined) return;
  throw new DamagedDataError({ runId, column: "events", event: unreadable.seq, problem: "its row cannot be read" });
}

/** Calls what reads a run's log. Data that it cannot read is told as this run's, whatever noticed it. */
export async function rethrowAsRunDamage<T>(runId: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toRunDamage(runId, error);
  }
}

/** The same error, or, if it is about data that could not be read, one that names the run. */
export function toRunDamage(runId: string, error: unknown): unknown {
  if (error instanceof DamagedDataError) {
    // The registration of a workflow is no run's, and says itself whose it is.
    if (error.runId !== undefined || error.column !== "events") return error;
    return error.ofRun(runId);
  }
  return error instanceof SerializationError || error instanceof SyntaxError
    ? damagedColumnError(runId, "log", error)
    : error;
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
