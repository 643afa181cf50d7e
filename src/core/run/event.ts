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
export type StepOutcome =
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

interface EventColumns {
  readonly node?: string;
  readonly attempt?: number;
  readonly outcome?: StepOutcome;
}

/** Makes an event. `raw` are user values that are encoded already; they join `data` under their names. */
export function newEvent<T extends EventType>(
  type: T,
  columns: EventColumns,
  data?: EventData[T],
  encodedValues?: Record<string, string>,
): NewEvent {
  return {
    type,
    node: columns.node ?? null,
    attempt: columns.attempt ?? null,
    outcome: columns.outcome ?? null,
    data: data === undefined && encodedValues === undefined ? null : encodeEventData(type, data ?? {}, encodedValues),
  };
}

function encodeEventData(type: EventType, data: object, encodedValues: Record<string, string> | undefined): string {
  if (type === "step.completed") return writeStepCompleted(data, encodedValues);
  const text = encode(data, { label: "event", limitBytes: Number.POSITIVE_INFINITY });
  if (encodedValues === undefined) return text;
  let joined = text.slice(0, -1);
  for (const name in encodedValues) joined += `${joined.length > 1 ? "," : ""}"${name}":${encodedValues[name]}`;
  return `${joined}}`;
}

export function dataOf<T extends EventType>(event: { readonly data: string | null }, _type: T): EventData[T] {
  return (event.data === null ? {} : decode(event.data)) as EventData[T];
}
