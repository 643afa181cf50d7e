/** Spans that are made when they are over, in the trace of the run's family, with ids that every process agrees upon. */

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

/** One span. The ids are those of runs and executions. */
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
  /** What its code saw as the active span. */
  readonly activeSpan?: ActiveSpan | undefined;
}

export class SpanFactory {
  readonly #tracer: Tracer;
  /** The provider has an IdGenerator of its own. */
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
   * A span without a parent begins a trace, whose id is up to the provider. If that is not the one of the family, the
   * span gets a parent that does not exist, and is at least in the same trace as the others.
   */
  #startRoot(spec: SpanSpec): Span {
    if (!this.#hasForeignIds) {
      const span = this.#start(spec, ROOT_CONTEXT);
      const spanContext = span.spanContext();
      // Of a provider that makes no spans there is nothing to learn; a real one may come later.
      if (!isSpanContextValid(spanContext) || spanContext.traceId === traceIdOf(spec.rootId)) return span;
      // The span is left alone: what does not end is not exported.
      this.#hasForeignIds = true;
    }
    return this.#start(spec, contextOf(spec, spec.id));
  }

  #start({ name, id, rootId, from, attributes, links = [] }: SpanSpec, context: Context): Span {
    const traceId = context === ROOT_CONTEXT ? traceIdOf(rootId) : null;
    // Instants as dates: a small number would be taken for a reading of the process's own clock.
    return withIds({ traceId, spanId: spanIdOf(id) }, () =>
      this.#tracer.startSpan(name, { startTime: new Date(from), attributes, links }, context),
    );
  }
}

const contextOf = ({ rootId }: SpanSpec, parentId: string): Context =>
  trace.setSpanContext(ROOT_CONTEXT, spanContextOf(rootId, parentId));

/** @param id of a run or an execution */
export function spanContextOf(rootRunId: string, id: string): SpanContext {
  return { traceId: traceIdOf(rootRunId), spanId: spanIdOf(id), traceFlags: TraceFlags.SAMPLED, isRemote: true };
}
