import { decode } from "../../core/encoding/decode.js";
import { DamagedDataError, InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import type { RunRecord, Store, StoredEvent } from "../../store/contract/store.js";
import { messageOf } from "./damaged-data.js";
import { readLogPage } from "./run-log.js";

/** One event of a run's log, for people and programs that read it. */
export interface HistoryEvent {
  readonly seq: number;
  readonly type: string;
  /** The step, timer, wait or child it is about. */
  readonly node: string | null;
  readonly attempt: number | null;
  readonly outcome: string | null;
  readonly at: Date;
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
    throw new InvalidInputError(`history({ after }) is the number of an event, not ${after}.`);
  if (!Number.isInteger(limit) || limit < 1 || limit > maxPageSize)
    throw new InvalidInputError(`history({ limit }) is between 1 and ${maxPageSize}, not ${limit}.`);
  const events = await readLogPage(store, run, { after, limit });
  return events.map((event) => {
    const { at, data: _, ...rest } = event;
    return { ...rest, at: new Date(at), data: decodeData(run.id, event) };
  });
}

/** The error names the event, so that the reader can go on behind it: `history({ after: error.event })`. */
function decodeData(runId: string, { seq, type, data }: StoredEvent): Record<string, unknown> {
  try {
    if (type === "batch") throw new TypeError("its row cannot be read");
    return data === null ? {} : (decode(data) as Record<string, unknown>);
  } catch (error) {
    throw new DamagedDataError({ runId, column: "events", event: seq, problem: messageOf(error) }, { cause: error });
  }
}
