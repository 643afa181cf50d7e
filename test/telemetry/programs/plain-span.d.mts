import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";

export interface PlainSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The message of the status, if the status is an error. */
  readonly error: string | null;
  readonly exceptions: readonly string[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
}

export function plainSpan(span: ReadableSpan): PlainSpan;
