/** Spans in words. */

import { escapeHidden } from "../../../ui/format.js";
import { formatDuration, formatInstant, formatRelative } from "../../../ui/time.js";
import type { Row, Span } from "./waterfall.js";

const waits: Readonly<Record<string, string>> = {
  start: "Waits for its start time",
  step: "Waits for the time of the step",
  retry: "Waits for the next attempt",
  reattempt: "Waits for the next execution",
  sleep: "Sleeps",
  signal: "Waits for a signal",
  child: "Waits for a child run",
  map: "Waits for child runs",
};

/** The name of a row as people read it. */
export const rowName = ({ kind, name }: Row): string =>
  escapeHidden(kind === "compensation" ? `${name.replace(/#compensate$/, "")} (compensation)` : name);

/** What the span is, such as "Execution, attempt 2". */
export function spanTitle(span: Span): string {
  const times = span.count > 1 ? ` × ${span.count.toLocaleString("en")}` : "";
  const attempt = span.attempt === null ? "" : `, attempt ${span.attempt}`;
  switch (span.kind) {
    case "execution":
      return `Execution${attempt}${times}`;
    case "queue":
      return `In the queue${attempt}${times}`;
    case "pause":
      return "Paused";
    case "lost":
      return "The worker died";
    default:
      return `${waits[span.waitsFor ?? ""] ?? "Waits"}${attempt}${times}`;
  }
}

export const spanDuration = (span: Span, until: number): number => Math.max(0, (span.to ?? until) - span.from);

/** How it ended: "completed", "failed: timed out"; or that it has not ended. */
export function spanEnd(span: Span): string {
  const outcome = span.outcome?.replaceAll("_", " ") ?? "success";
  if (outcome === "success") return span.state;
  return outcome.startsWith(span.state) ? outcome : `${span.state}: ${outcome}`;
}

/** The facts about a span, for the card beside its bar. */
export function spanFacts(span: Span, until: number, isUtc: boolean): [string, string][] {
  const facts: [string, string][] = [
    ["Took", `${formatDuration(spanDuration(span, until))}${span.to === null ? " so far" : ""}`],
    ["From", `${span.isCut ? "before " : ""}${formatInstant(span.from, isUtc, { withMs: true })}`],
    ["To", span.to === null ? "not yet" : formatInstant(span.to, isUtc, { withMs: true })],
    ["State", spanEnd(span)],
  ];
  if (span.dueAt !== null && span.to === null)
    facts.push(["Due", `${formatRelative(span.dueAt, until)} (${formatInstant(span.dueAt, isUtc)})`]);
  if (span.worker !== null) facts.push(["Worker", escapeHidden(span.worker)]);
  if (span.reason !== null) facts.push(["Reason", escapeHidden(span.reason)]);
  return facts;
}

/** One line for screen readers. */
export const spanLabel = (row: Row, span: Span, until: number, isUtc: boolean): string =>
  [`${rowName(row)}: ${spanTitle(span)}`, ...spanFacts(span, until, isUtc).map((fact) => fact.join(" "))].join("; ");

/** What a row that stands for several contains: "24, 3 failed, 5 to come". */
export function groupText({ group }: Row): string {
  if (group === null) return "";
  const open = group.count - group.ended - group.pending;
  const parts = [
    group.failed > 0 ? `${group.failed.toLocaleString("en")} failed` : "",
    open > 0 ? `${open.toLocaleString("en")} open` : "",
    group.pending > 0 ? `${group.pending.toLocaleString("en")} to come` : "",
  ].filter((part) => part !== "");
  return parts.length === 0 ? "all ended" : parts.join(", ");
}

/** The time that a row covers, and what it still waits for. */
export function rowText(row: Row, until: number): string {
  const first = row.spans[0];
  if (first === undefined) return "";
  const last = row.spans.reduce((end, span) => Math.max(end, span.to ?? until), first.from);
  const due = row.spans.find(({ to, dueAt }) => to === null && dueAt !== null)?.dueAt ?? null;
  const took = formatDuration(last - Math.min(...row.spans.map(({ from }) => from)));
  if (due !== null && due > until) return `${took}, due ${formatRelative(due, until)}`;
  return took;
}
