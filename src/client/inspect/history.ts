import { decode } from "../../core/encoding/decode.js";
import { DamagedDataError, InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import type { RunRecord, Store, StoredEvent } from "../../store/contract/store.js";
import { messageOf } from "./damaged-data.js";
import { readLogPage } from "./run-log.js";

/** One event of a run's log, as `run.history()` returns it. */
export interface HistoryEvent {
  /** The number of the event, from 1. */
  readonly seq: number;
  /** The type of the event, such as "step.completed". */
  readonly type: string;
  /** The step, timer, wait or child that the event is about; null if it is about the run. */
  readonly node: string | null;
  /** The number of the attempt, for events of steps; otherwise null. */
  readonly attempt: number | null;
  /** How an execution ended, for events that end one; otherwise null. */
  readonly outcome: string | null;
  /** When the event was committed, by the clock of the store. */
  readonly at: Date;
  /** The details, which depend on the type. */
  readonly data: Record<string, unknown>;
}

const maxPageSize = 1_000;
const pageOptions = new Set(["after", "limit"]);

export async function readHistory(
  store: Store,
  run: RunRecord,
  page: { readonly after?: number; readonly limit?: number },
): Promise<HistoryEvent[]> {
  checkOptions("history()", page, pageOptions);
  const { after = 0, limit = maxPageSize } = page;
  if (!Number.isInteger(after) || after < 0)
    throw new InvalidInputError(`history({ after }) must be the number of an event, not ${after}.`);
  if (!Number.isInteger(limit) || limit < 1 || limit > maxPageSize)
    throw new InvalidInputError(`history({ limit }) must be between 1 and ${maxPageSize}, not ${limit}.`);
  const events = await readLogPage(store, run, { after, limit });
  return events.map((event) => toHistoryEvent(run.id, event));
}

/** @throws DamagedDataError that names the run and the event */
export function toHistoryEvent(runId: string, event: StoredEvent): HistoryEvent {
  const { at, data: _, ...rest } = event;
  return { ...rest, at: new Date(at), data: decodeData(runId, event) };
}

/** Names the event in its error, so that the caller can read on after that event with `history({ after: error.event })`. */
function decodeData(runId: string, { seq, type, data }: StoredEvent): Record<string, unknown> {
  try {
    if (type === "batch") throw new TypeError("its row cannot be read");
    return data === null ? {} : (decode(data) as Record<string, unknown>);
  } catch (error) {
    throw new DamagedDataError({ runId, column: "events", event: seq, problem: messageOf(error) }, { cause: error });
  }
}
