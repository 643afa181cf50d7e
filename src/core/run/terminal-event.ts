/**
 * The last event of a run. It is not stored: all it says is in the run's row, as all that was given at the start is, and
 * to write it twice would only make it possible for the two to differ. Readers of a whole log add it.
 */
import { decode } from "../encoding/decode.js";
import type { Failure } from "../encoding/error-record.js";
import { newEvent, type StoredEvent } from "./event.js";

interface RunResultColumns {
  readonly status: string;
  readonly output: string | null;
  readonly error: string | null;
  readonly finishedAt: number | null;
}

const terminalEventTypes = new Set(["run.completed", "run.failed", "run.canceled"]);

export const isTerminalEvent = ({ type }: { readonly type: string }): boolean => terminalEventTypes.has(type);

/** The event that ends a log of `count` events; null when the run has not ended. */
export function terminalEventOf(run: RunResultColumns, eventCount: number): StoredEvent | null {
  if (run.finishedAt === null) return null;
  return { ...newTerminalEvent(run), seq: eventCount + 1, at: run.finishedAt };
}

function newTerminalEvent({ status, output, error }: RunResultColumns) {
  if (status === "completed") return newEvent("run.completed", {}, undefined, output === null ? {} : { output });
  if (status === "failed") return newEvent("run.failed", {}, undefined, error === null ? {} : { error });
  const reason = cancelReasonIn(error);
  return newEvent("run.canceled", {}, reason === null ? {} : { reason });
}

/** The column may be damaged; that is `verify`'s business, not a reason to have no history. */
function cancelReasonIn(error: string | null): string | null {
  if (error === null) return null;
  try {
    return (decode(error) as Failure).message;
  } catch {
    return null;
  }
}
