/**
 * Stores the span that a run was started in as a tag of the run. The run's own span, which links to it, is created when
 * the run ends, in any process, perhaps months later.
 */
import { isSpanContextValid, type Link, type SpanContext } from "@opentelemetry/api";

/** The form of the W3C header `traceparent`. */
const pattern = /^trace:00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

export function starterTag({ traceId, spanId, traceFlags }: SpanContext): string {
  return `trace:00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

export function starterLinks(tags: readonly string[]): Link[] {
  const links: Link[] = [];
  for (const tag of tags) {
    const [, traceId = "", spanId = "", flags = ""] = pattern.exec(tag) ?? [];
    const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
    if (isSpanContextValid(context)) links.push({ context });
  }
  return links;
}
