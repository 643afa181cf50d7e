/**
 * The last event of a run. It is not stored: all it says is in the run's row, as all that was given at the start is, and
 * to write it twice would only make it possible for the two to differ. Readers of a whole log add it.
 */
import { decode } from "../encoding/decode.js";
import type { Failure } from "../encoding/error-record.js";
import { event, type StoredEvent } from "./event.js";

interface EndedRun {
  readonly status: string;
  readonly output: string | null;
  readonly error: string | null;
  readonly finishedAt: number | null;
}

const endings = new Set(["run.completed", "run.failed", "run.canceled"]);

export const isEnding = ({ type }: { readonly type: string }): boolean => endings.has(type);

/** The event that ends a log of `count` events; null when the run has not ended. */
export function endingOf(run: EndedRun, count: number): StoredEvent | null {
  if (run.finishedAt === null) return null;
  return { ...endingEvent(run), seq: count + 1, at: run.finishedAt };
}

function endingEvent({ status, output, error }: EndedRun) {
  if (status === "completed") return event("run.completed", {}, undefined, output === null ? {} : { output });
  if (status === "failed") return event("run.failed", {}, undefined, error === null ? {} : { error });
  const reason = reasonIn(error);
  return event("run.canceled", {}, reason === null ? {} : { reason });
}

/** The column may be damaged; that is `verify`'s business, not a reason to have no history. */
function reasonIn(error: string | null): string | null {
  if (error === null) return null;
  try {
    return (decode(error) as Failure).message;
  } catch {
    return null;
  }
}
