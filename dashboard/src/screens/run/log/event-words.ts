/** What an event is about, in one line, and to which group it belongs. */

import { escapeHidden, formatBytes } from "../../../ui/format.js";
import type { RunStatus } from "../../../ui/status.js";
import { formatDuration } from "../../../ui/time.js";
import type { RunEvent } from "./log-windows.js";

export const eventGroups = [
  ["", "All events"],
  ["failures", "Failures and pauses"],
  ["steps", "Steps"],
  ["messages", "Signals and commands"],
  ["waits", "Timers and waits"],
  ["children", "Children and maps"],
  ["run", "The run itself"],
] as const;

const prefixes: Readonly<Record<string, RegExp>> = {
  failures: /\.(failed|canceled|timed_out|paused|expired|recovered|blocked)$/,
  steps: /^(step|node)\./,
  messages: /^(signal|command)\.|^run\.(paused|resumed|cancel_requested)$/,
  waits: /^(timer|wait)\./,
  children: /^(child|map|node)\./,
  run: /^(run|shape|branch|patch|call|dag|input)\./,
};

export const isInGroup = ({ type }: RunEvent, group: string): boolean => prefixes[group]?.test(type) ?? true;

/** The status whose colour and icon an event has; null: none. */
export function stateOf({ type }: RunEvent): RunStatus | "scheduled" | "skipped" | null {
  const end = type.slice(type.lastIndexOf(".") + 1);
  switch (end) {
    case "completed":
    case "failed":
    case "canceled":
    case "paused":
    case "skipped":
    case "scheduled":
      return end;
    case "started":
    case "dispatched":
    case "resumed":
      return type.startsWith("wait.") || type.startsWith("timer.") ? "waiting" : "running";
    case "timed_out":
    case "expired":
      return "failed";
    case "fired":
      return "completed";
    case "received":
    case "accepted":
      return "pending";
    default:
      return null;
  }
}

type Fields = Readonly<Record<string, unknown>>;

const isDuration = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

const previewOf = (value: unknown): string => (JSON.stringify(value) ?? "undefined").slice(0, 120);

/** The most telling facts of the details. */
export function summaryOf({ data, outcome }: RunEvent): string {
  const fields = (data ?? {}) as Fields;
  if (fields.$pawl === "hidden") return "details hidden";
  if (fields.$pawl === "large") return `details: ${formatBytes(Number(fields.bytes))}`;
  const error = fields.error as Fields | undefined;
  const duration = (name: string, text: (time: string) => string) =>
    isDuration(fields[name]) ? text(formatDuration(fields[name])) : null;
  const plainText = (name: string, before = "") =>
    typeof fields[name] === "string" && fields[name] !== "" ? `${before}${fields[name]}` : null;
  const parts = [
    typeof error === "object" && error !== null ? `${String(error.name)}: ${String(error.message)}` : null,
    outcome === null || outcome === "success" ? null : outcome.replaceAll("_", " "),
    plainText("name"),
    Array.isArray(fields.names) ? fields.names.join(", ") : null,
    plainText("command"),
    plainText("by", "by "),
    error === undefined ? plainText("reason") : null,
    plainText("workflow"),
    plainText("job", "job "),
    plainText("choice"),
    plainText("worker", "on "),
    "output" in fields
      ? `${isDuration(fields.ms) ? `${formatDuration(fields.ms)} ` : ""}→ ${previewOf(fields.output)}`
      : duration("ms", (time) => time),
    duration("waitMs", (time) => `in ${time}`),
    duration("retryMs", (time) => `again in ${time}`),
    duration("timeoutMs", (time) => `at most ${time}`),
    isDuration(fields.count) ? `${fields.count} children` : null,
    "payload" in fields ? previewOf(fields.payload) : null,
    Array.isArray(fields.signals) && fields.signals.length > 0 ? `took event ${fields.signals.join(", ")}` : null,
  ];
  return escapeHidden(
    parts
      .filter((part) => part !== null)
      .join(" · ")
      .slice(0, 300),
  ).replaceAll("\n", " ");
}

const searchTexts = new WeakMap<RunEvent, string>();

/** Whether an event contains all words, in whatever place. */
export function hasWords(event: RunEvent, words: readonly string[]): boolean {
  let text = searchTexts.get(event);
  if (text === undefined) {
    text =
      `${event.seq} ${event.type} ${event.node ?? ""} ${event.outcome ?? ""} ${JSON.stringify(event.data)}`.toLowerCase();
    searchTexts.set(event, text);
  }
  return words.every((word) => (text as string).includes(word));
}
