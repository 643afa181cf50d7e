/**
 * The events of a log. The log is the only source of truth about a run.
 *
 * `data` stays encoded text and is decoded only where its value is needed. User values are encoded once, and inserted into
 * `data` as text.
 */

import { decode } from "../encoding/decode.js";
import { encode } from "../encoding/encode.js";
import { writeStepCompleted } from "./step-completed.js";
import type { EventData, EventType } from "./stored-schema.js";

/** One event of a run's log. `data` is encoded text; the other columns are plain so that SQL can read them. */
export interface StoredEvent {
  /** The number of the event in its log, from 1, without gaps. */
  readonly seq: number;
  /** An `EventType`, or a type that a newer version of Pawl has written. */
  readonly type: string;
  /** The key of the call that the event is about; null when the event is about the run as a whole. */
  readonly node: string | null;
  /** The number of the step's attempt, from 1. */
  readonly attempt: number | null;
  /** How the attempt ended, a `StepOutcome`. */
  readonly outcome: string | null;
  /** The encoded `EventData` of the type. */
  readonly data: string | null;
  /** When the event was committed, by the store's clock. */
  readonly at: number;
}

/** An event before it is committed. The commit assigns its number and its timestamp. */
export type NewEvent = Omit<StoredEvent, "seq" | "at">;

/** How an attempt at a step ended. */
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

/** Creates an event. `encodedValues` are user values that are already encoded; they are added to `data` by their names. */
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

/** The decoded data of an event. The caller must have checked that the event has this type. */
export function dataOf<T extends EventType>(event: { readonly data: string | null }, _type: T): EventData[T] {
  return (event.data === null ? {} : decode(event.data)) as EventData[T];
}
