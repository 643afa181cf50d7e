/**
 * The last event of a run's log. The event is not stored, because the run's row has the same facts, and two copies could
 * differ. Code that reads a whole log appends the event with `terminalEventOf`.
 */
import { decode } from "../encoding/decode.js";
import type { Failure } from "../encoding/error-record.js";
import { cancelData } from "./cancel-reason.js";
import { newEvent, type StoredEvent } from "./event.js";

interface RunResultColumns {
  readonly status: string;
  readonly output: string | null;
  readonly error: string | null;
  readonly finishedAt: number | null;
}

const terminalEventTypes = new Set(["run.completed", "run.failed", "run.canceled"]);

export const isTerminalEvent = ({ type }: { readonly type: string }): boolean => terminalEventTypes.has(type);

/** The event that ends a log of `eventCount` events; null when the run has not ended. */
export function terminalEventOf(run: RunResultColumns, eventCount: number): StoredEvent | null {
  if (run.finishedAt === null) return null;
  return { ...newTerminalEvent(run), seq: eventCount + 1, at: run.finishedAt };
}

function newTerminalEvent({ status, output, error }: RunResultColumns) {
  if (status === "completed") return newEvent("run.completed", {}, undefined, output === null ? {} : { output });
  if (status === "failed") return newEvent("run.failed", {}, undefined, error === null ? {} : { error });
  const { message = null, code = null } = cancelFailureIn(error);
  return newEvent("run.canceled", {}, cancelData(message, typeof code === "string" ? code : null));
}

/** Returns nothing when there is no reason, or when the column is damaged, so that the history can still be read. */
function cancelFailureIn(error: string | null): Partial<Failure> {
  if (error === null) return {};
  try {
    return decode(error) as Failure;
  } catch {
    return {};
  }
}
