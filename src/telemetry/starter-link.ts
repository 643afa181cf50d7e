/**
 * In which span a run was started. It is kept as a tag of the run: the run's own span is made when the run ends, by
 * whichever process that happens in, perhaps months later.
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
