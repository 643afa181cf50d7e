/** What the tests of telemetry share: spans in memory, as plain data and as a tree that can be read. */
import {
  BasicTracerProvider,
  type IdGenerator,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { RunIdGenerator } from "pawl/otel";
import { type PlainSpan, plainSpan } from "../telemetry/programs/plain-span.mjs";

export function tracing(idGenerator: IdGenerator | null = new RunIdGenerator()) {
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({
    ...(idGenerator === null ? {} : { idGenerator }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  return { tracerProvider, spans: () => exporter.getFinishedSpans().map(plainSpan) };
}

/**
 * One line per span, indented below its parent; siblings in the order of their text. Spans whose parent is not among them
 * stand at the left, so that a tree that has come apart shows.
 */
export function treeOf(spans: readonly PlainSpan[]): string[] {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const below = (parent: PlainSpan | null): string[] =>
    spans
      .filter(({ parentSpanId }) =>
        parent === null ? parentSpanId === null || !ids.has(parentSpanId) : parentSpanId === parent.spanId,
      )
      .map((span) => [lineOf(span), ...below(span).map((line) => `  ${line}`)])
      .sort(([a], [b]) => ((a as string) < (b as string) ? -1 : 1))
      .flat();
  return below(null);
}

function lineOf({ name, attributes, error }: PlainSpan): string {
  const attempt = attributes["pawl.attempt"];
  const end = attributes["pawl.status"] ?? attributes["pawl.outcome"];
  return `${name}${attempt === undefined ? "" : ` ${attempt}`}: ${end}${error === null ? "" : ` (${error})`}`;
}
