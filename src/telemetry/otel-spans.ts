/**
 * Creates each span when its run or execution has ended. A root run and all its descendants are in one trace, and the
 * ids of spans are computed from those of runs and executions, so that all processes agree on them.
 */

import type { Link } from "@opentelemetry/api";
import {
  type Attributes,
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { Failure } from "../core/encoding/error-record.js";
import type { ActiveSpan } from "./otel-active-span.js";
import { spanIdOf, traceIdOf, withIds } from "./span-ids.js";

/** A span to create; its ids are those of runs and executions. */
export interface SpanSpec {
  readonly name: string;
  readonly id: string;
  readonly parentId: string | null;
  readonly rootId: string;
  readonly from: number;
  readonly to: number;
  readonly attributes: Attributes;
  readonly error: Failure | null;
  readonly links?: Link[];
  /** The span that was active while the code of the step ran. */
  readonly activeSpan?: ActiveSpan | undefined;
}

export class SpanFactory {
  readonly #tracer: Tracer;
  /** Whether the provider does not use `RunIdGenerator`. */
  #hasForeignIds = false;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  createSpan(spec: SpanSpec): void {
    const span = spec.parentId === null ? this.#startRoot(spec) : this.#start(spec, contextOf(spec, spec.parentId));
    const { error, to } = spec;
    spec.activeSpan?.replayOnto(span);
    if (error !== null) {
      span.recordException(error, new Date(to));
      span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
    }
    span.end(new Date(to));
  }

  /**
   * A span without a parent starts a trace, whose id the provider chooses. If that is not the trace of the root run, the
   * span gets a parent that does not exist, and is at least in the same trace as its descendants.
   */
  #startRoot(spec: SpanSpec): Span {
    if (!this.#hasForeignIds) {
      const span = this.#start(spec, ROOT_CONTEXT);
      const spanContext = span.spanContext();
      // The span of a no-op provider does not show how a provider chooses ids; a real provider may be registered later.
      if (!isSpanContextValid(spanContext) || spanContext.traceId === traceIdOf(spec.rootId)) return span;
      // This span is not ended, and so it is not exported.
      this.#hasForeignIds = true;
    }
    return this.#start(spec, contextOf(spec, spec.id));
  }

  #start({ name, id, rootId, from, attributes, links = [] }: SpanSpec, context: Context): Span {
    const traceId = context === ROOT_CONTEXT ? traceIdOf(rootId) : null;
    // OpenTelemetry would interpret a small number as a reading of `performance.now()`, so times are passed as dates.
    return withIds({ traceId, spanId: spanIdOf(id) }, () =>
      this.#tracer.startSpan(name, { startTime: new Date(from), attributes, links }, context),
    );
  }
}

const contextOf = ({ rootId }: SpanSpec, parentId: string): Context =>
  trace.setSpanContext(ROOT_CONTEXT, spanContextOf(rootId, parentId));

/** @param id the id of a run or of an execution */
export function spanContextOf(rootRunId: string, id: string): SpanContext {
  return { traceId: traceIdOf(rootRunId), spanId: spanIdOf(id), traceFlags: TraceFlags.SAMPLED, isRemote: true };
}
