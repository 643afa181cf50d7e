// A finished span as data that can be sent from one process to another.

import { SpanStatusCode } from "@opentelemetry/api";

export function plainSpan(span) {
  const { traceId, spanId } = span.spanContext();
  return {
    name: span.name,
    traceId,
    spanId,
    parentSpanId: span.parentSpanContext?.spanId ?? null,
    startMs: inMs(span.startTime),
    endMs: inMs(span.endTime),
    attributes: span.attributes,
    error: span.status.code === SpanStatusCode.ERROR ? (span.status.message ?? "") : null,
    exceptions: span.events
      .filter(({ name }) => name === "exception")
      .map(({ attributes }) => String(attributes?.["exception.message"])),
    links: span.links.map(({ context: { traceId, spanId } }) => ({ traceId, spanId })),
  };
}

const inMs = ([seconds, nanos]) => seconds * 1_000 + nanos / 1e6;
