/**
 * How a transition's events become one row, and back.
 *
 * One row per commit and run is what makes fan-out cheap (1,000 parallel steps that finish together are one row, not
 * 1,000). A single event keeps its plain columns; several share a row of type "batch" whose data is a JSON array of
 * [type, node, attempt, outcome, data] tuples, readable by any database's JSON functions.
 */
import type { PackedEvent } from "../../core/run/stored-schema.js";
import type { NewEvent, StoredEvent } from "../contract/store.js";

export interface EventRow extends NewEvent {
  /** How many events the row holds: numbers seq … seq + span - 1. */
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
    // One event stands for the row: folding this log refuses it, and reading many logs still gives the others.
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
