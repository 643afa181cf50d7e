import { decode } from "../core/codec.js";
import { InvalidInputError } from "../core/errors.js";
import type { RunRecord, Store } from "../store/store.js";
import { readPage } from "./log.js";

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

const pageLimit = 1_000;

export async function readHistory(
  store: Store,
  run: RunRecord,
  page: { readonly after?: number; readonly limit?: number },
): Promise<HistoryEvent[]> {
  const { after = 0, limit = pageLimit } = page;
  if (!Number.isInteger(after) || after < 0)
    throw new InvalidInputError(`history({ after }) is the number of an event, not ${after}.`);
  if (!Number.isInteger(limit) || limit < 1 || limit > pageLimit)
    throw new InvalidInputError(`history({ limit }) is between 1 and ${pageLimit}, not ${limit}.`);
  const events = await readPage(store, run, { after, limit });
  return events.map(({ at, data, ...rest }) => ({
    ...rest,
    at: new Date(at),
    data: data === null ? {} : (decode(data) as Record<string, unknown>),
  }));
}
