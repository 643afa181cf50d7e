/**
 * Errors about stored data that cannot be read. They name the run and the column or event, so that an operator can repair
 * the row.
 */
import { decode } from "../../core/encoding/decode.js";
import { DamagedDataError, SerializationError } from "../../core/errors/errors.js";
import { fold } from "../../core/run/fold.js";
import type { RunState } from "../../core/run/state.js";
import type { RunRecord, StoredEvent } from "../../store/contract/store.js";

/** A field of a `RunInfo` that could not be read; its value is null or empty. */
export interface DamagedField {
  /** The name of the field. */
  readonly field: string;
  /** Why it could not be read. */
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

/**
 * Throws if the log has a row that cannot be read; the store returns such a row as an event of type "batch". Folding the log
 * throws for it, too, so only callers that do not fold the log need this check.
 */
export function checkEventsReadable(runId: string, log: readonly StoredEvent[]): void {
  const unreadableEvent = log.find(({ type }) => type === "batch");
  if (unreadableEvent === undefined) return;
  throw new DamagedDataError({
    runId,
    column: "events",
    event: unreadableEvent.seq,
    problem: "its row cannot be read",
  });
}

/** Calls `work`, which reads the log of a run. If `work` throws an error about unreadable data, the error names the run. */
export async function rethrowAsRunDamage<T>(runId: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toRunDamage(runId, error);
  }
}

/** Returns an error that names the run if `error` is about unreadable data, otherwise `error` itself. */
export function toRunDamage(runId: string, error: unknown): unknown {
  if (error instanceof DamagedDataError) {
    // The error names the run already, or it is about the registration of a workflow, which belongs to no run.
    if (error.runId !== undefined || error.column !== "events") return error;
    return error.ofRun(runId);
  }
  return error instanceof SerializationError || error instanceof SyntaxError
    ? damagedColumnError(runId, "log", error)
    : error;
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
