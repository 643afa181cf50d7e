/**
 * The vocabulary of the log. An event says what happened, in the past tense; the log of events is the truth about a run.
 *
 * `data` stays text on its way through the engine: it is decoded only where the value is needed. User values enter
 * it as fragments that were encoded once and are never encoded again.
 */

import { decode } from "../encoding/decode.js";
import { encode } from "../encoding/encode.js";
import { writeStepCompleted } from "./step-completed.js";
import type { EventData, EventType } from "./stored-schema.js";

/** One event of a run's log. `data` is encoded text; the other columns are plain so that SQL can read them. */
export interface StoredEvent {
  readonly seq: number;
  readonly type: string;
  readonly node: string | null;
  readonly attempt: number | null;
  readonly outcome: string | null;
  readonly data: string | null;
  readonly at: number;
}

/** An event before the store has given it its number and stamped it. */
export type NewEvent = Omit<StoredEvent, "seq" | "at">;

/** How a step execution ended. */
export type Outcome =
  | "success"
  | "reattempted"
  | "continued"
  | "skipped_by_condition"
  | "skipped_by_flow_control"
  | "skipped_by_exception"
  | "canceled_by_condition"
  | "canceled_by_flow_control"
  | "canceled_by_exception"
  | "reattempted_by_exception"
  | "failed_by_exception"
  | "paused_by_exception"
  | "workflow_paused"
  | "timed_out"
  | "abandoned";

interface Position {
  readonly node?: string;
  readonly attempt?: number;
  readonly outcome?: Outcome;
}

/** Makes an event. `raw` are user values that are encoded already; they join `data` under their names. */
export function event<T extends EventType>(
  type: T,
  place: Position,
  data?: EventData[T],
  raw?: Record<string, string>,
): NewEvent {
  return {
    type,
    node: place.node ?? null,
    attempt: place.attempt ?? null,
    outcome: place.outcome ?? null,
    data: data === undefined && raw === undefined ? null : write(type, data ?? {}, raw),
  };
}

function write(type: EventType, data: object, raw: Record<string, string> | undefined): string {
  if (type === "step.completed") return writeStepCompleted(data, raw);
  const text = encode(data, { what: "event", limit: Number.POSITIVE_INFINITY });
  if (raw === undefined) return text;
  let joined = text.slice(0, -1);
  for (const name in raw) joined += `${joined.length > 1 ? "," : ""}"${name}":${raw[name]}`;
  return `${joined}}`;
}

export function dataOf<T extends EventType>(of: { readonly data: string | null }, _type: T): EventData[T] {
  return (of.data === null ? {} : decode(of.data)) as EventData[T];
}
