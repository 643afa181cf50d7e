/** Events that a person or another program caused, in words. */
import { formatBytes, formatDuration } from "../../../ui/format.js";
import type { RunEvent } from "../log/log-windows.js";

export interface Message {
  readonly seq: number;
  readonly at: string;
  readonly what: string;
  readonly by: string | null;
  readonly details: string;
  readonly state: string;
}

const types = new Set([
  "signal.received",
  "command.accepted",
  "run.paused",
  "run.resumed",
  "run.cancel_requested",
  "wait.started",
  "wait.timed_out",
  "node.reopened",
  "dag.imported",
]);

export const isMessage = ({ type }: RunEvent): boolean => types.has(type);

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (event: RunEvent): Fields => (event.data ?? {}) as Fields;

/** By the number of a signal's event: the event that consumed it. By the key of a wait: the event that ended it. */
export function consumersOf(events: readonly RunEvent[]): ReadonlyMap<number | string, RunEvent> {
  const consumers = new Map<number | string, RunEvent>();
  for (const event of events) {
    const { signals, signal } = fieldsOf(event);
    if (event.type === "wait.completed" && Array.isArray(signals))
      for (const seq of signals) consumers.set(Number(seq), event);
    if (event.type === "run.resumed" && typeof signal === "number") consumers.set(signal, event);
    if (/^wait\.(completed|timed_out|withdrawn)$/.test(event.type) && event.node !== null)
      consumers.set(event.node, event);
  }
  return consumers;
}

export function messageOf(event: RunEvent, consumers: ReadonlyMap<number | string, RunEvent>): Message {
  const { seq, at } = event;
  const fields = fieldsOf(event);
  const by = typeof fields.by === "string" ? fields.by : null;
  return { seq, at, by, ...wordsOf(event, fields, consumers) };
}

function wordsOf(
  event: RunEvent,
  fields: Fields,
  consumers: ReadonlyMap<number | string, RunEvent>,
): Pick<Message, "what" | "details" | "state"> {
  const isUnseen = fields.$pawl === "hidden" || fields.$pawl === "large";
  const unseen = fields.$pawl === "hidden" ? "hidden" : `${formatBytes(Number(fields.bytes ?? 0))}, in the log`;
  const details = (text: string) => (isUnseen ? unseen : text);
  const reason = typeof fields.reason === "string" ? fields.reason : "";
  switch (event.type) {
    case "signal.received": {
      const consumer = consumers.get(event.seq);
      const payload = fields.payload === undefined ? "" : JSON.stringify(fields.payload).slice(0, 300);
      const what = isUnseen ? "signal" : `signal ${String(fields.name)}`;
      return {
        what,
        details: details(payload),
        state: consumer === undefined ? "kept" : `taken by event ${consumer.seq}`,
      };
    }
    case "wait.started": {
      const end = consumers.get(event.node ?? "");
      const names = Array.isArray(fields.names) ? fields.names.join(", ") : "";
      const limit = typeof fields.timeoutMs === "number" ? `at most ${formatDuration(fields.timeoutMs)}` : "";
      const state = end === undefined ? "open" : `${end.type.slice(5).replace("_", " ")} by event ${end.seq}`;
      return { what: `wait for ${names}`, details: details(limit), state };
    }
    case "command.accepted":
      return {
        what: isUnseen ? "command" : `command ${String(fields.command)}`,
        details: details(reason),
        state: "accepted",
      };
    case "run.paused":
      return { what: "paused", details: details(reason), state: event.node === null ? "" : `at ${event.node}` };
    case "run.cancel_requested":
      return { what: "cancel requested", details: details(reason), state: fields.force === true ? "by force" : "" };
    default:
      return {
        what: event.type.slice(event.type.indexOf(".") + 1).replace("_", " "),
        details: details(reason),
        state: event.node ?? "",
      };
  }
}
