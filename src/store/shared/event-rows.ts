/**
 * Packs the events of a transition into one row, and unpacks them.
 *
 * One row per commit and run keeps fan-out cheap: 1,000 parallel steps that finish together are one row, not 1,000. A
 * single event has its own columns; several events share a row of type "batch" whose data is a JSON array of
 * [type, node, attempt, outcome, data] tuples, which the JSON functions of every database can read.
 */
import type { PackedEvent } from "../../core/run/stored-schema.js";
import type { NewEvent, StoredEvent } from "../contract/store.js";

export interface EventRow extends NewEvent {
  /** The number of events in the row: they have the numbers seq … seq + span - 1. */
  readonly span: number;
}

const batchType = "batch";

export function packEvents(events: readonly NewEvent[]): EventRow {
  const first = events[0];
  if (first === undefined) throw new RangeError("There are no events to pack.");
  if (events.length === 1) {
    const { type, node, attempt, outcome, data } = first;
    return { type, node, attempt, outcome, data, span: 1 };
  }
  const tuples = events.map(
    ({ type, node, attempt, outcome, data }): PackedEvent => [type, node, attempt, outcome, data],
  );
  return {
    type: batchType,
    node: null,
    attempt: null,
    outcome: null,
    data: JSON.stringify(tuples),
    span: events.length,
  };
}

/** Appends the row's events that come after number `after` to `out`. */
export function unpackRow(
  row: EventRow & { readonly seq: number; readonly at: number },
  after: number,
  out: StoredEvent[],
): void {
  if (row.type !== batchType && row.span === 1) {
    if (row.seq > after) {
      const { seq, type, node, attempt, outcome, data, at } = row;
      out.push({ seq, type, node, attempt, outcome, data, at });
    }
    return;
  }
  const tuples = row.type === batchType ? readTuples(row) : null;
  if (tuples === null) {
    // A damaged row is returned as one event of type "batch", which no log may contain: folding this log fails, but
    // reading it together with other logs does not.
    const { seq, node, attempt, outcome, data, at } = row;
    out.push({ seq, type: batchType, node, attempt, outcome, data, at });
    return;
  }
  let seq = row.seq;
  for (const [type, node, attempt, outcome, data] of tuples) {
    if (seq > after) out.push({ seq, type, node, attempt, outcome, data, at: row.at });
    seq += 1;
  }
}

function readTuples({ data, span }: EventRow): PackedEvent[] | null {
  try {
    const tuples: unknown = JSON.parse(data ?? "");
    return Array.isArray(tuples) && tuples.length === span && tuples.every(isTuple) ? tuples : null;
  } catch {
    return null;
  }
}

const isTuple = (value: unknown): value is PackedEvent =>
  Array.isArray(value) && typeof value[0] === "string" && (value[4] === null || typeof value[4] === "string");
