/**
 * Exports runs and step executions as spans: one tree for a run and all its descendants, whichever processes executed
 * them. Each process creates the spans of the runs and executions whose end it has itself committed.
 */

import {
  type Attributes,
  type Context,
  context,
  isSpanContextValid,
  type Span,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import { LruMap } from "../core/lru-map.js";
import { checkOptions } from "../core/naming/check-options.js";
import { executionId } from "../core/naming/ids.js";
import { dataOf } from "../core/run/event.js";
import type { Runtime, Timer } from "../runtime/runtime.js";
import { systemRuntime } from "../runtime/system.js";
import type { InterceptedCall, InterceptedStart } from "./call-interception.js";
import {
  ErrorGuard,
  interceptCalls,
  type Listener,
  listen,
  type TelemetryOptions,
  type TelemetrySubscription,
} from "./listeners.js";
import { ActiveSpan } from "./otel-active-span.js";
import { SpanFactory, spanContextOf } from "./otel-spans.js";
import type { RunEvent, RunStatusChange } from "./publish.js";
import { RunCache, type RunSource } from "./run-cache.js";
import { starterLinks, starterTag } from "./starter-link.js";
import { isStepEnd, stepEndOf } from "./step-ends.js";

/** The part of `Pawl` that tracing uses. */
export interface TraceSource extends RunSource {
  /** The run with this id, as `pawl.run` returns it. */
  run(id: string): ReturnType<RunSource["run"]> & {
    /** The step executions of the run. */
    executions(): Promise<
      readonly {
        /** The name of the step. */
        readonly step: string;
        /** The number of the attempt, from 1. */
        readonly attempt: number;
        /** How the execution ended, or null if it has not ended. */
        readonly outcome: string | null;
        /** When the execution started, or null if it has not started. */
        readonly startedAt: Date | null;
        /** When the execution ended, or null if it has not ended. */
        readonly finishedAt: Date | null;
      }[]
    >;
  };
}

/** Options of `traceRuns`. */
export interface TraceOptions extends TelemetryOptions {
  /** The provider of the tracer; default: the global one. It needs a `RunIdGenerator` for one tree across processes. */
  readonly tracerProvider?: TracerProvider;
}

const traceOptions = new Set<string>(["tracerProvider", "logger"] satisfies (keyof TraceOptions)[]);

/**
 * Creates a span for each run and each step execution that ends in this process, until you stop it.
 *
 * @example
 * ```ts
 * const tracing = traceRuns(pawl);
 * // when the process ends:
 * await tracing.stop();
 * await pawl.close();
 * ```
 */
export function traceRuns(pawl: TraceSource, options: TraceOptions = {}): TelemetrySubscription {
  checkOptions("traceRuns()", options, traceOptions);
  const provider = options.tracerProvider ?? trace;
  const guard = new ErrorGuard("Tracing", options);
  const tracer = new RunTracer(pawl, new SpanFactory(provider.getTracer("pawl")), guard, systemRuntime);
  const stopIntercepting = interceptCalls(tracer, guard);
  const subscription = listen(tracer, guard);
  return {
    stop: () => {
      stopIntercepting();
      return subscription.stop();
    },
  };
}

/**
 * Links the active span of your code, if there is one, to the span that the run will have.
 *
 * @param run what `start` returned: a run without a parent
 *
 * @example
 * ```ts
 * linkToRun(await pawl.start(order, input));
 * ```
 */
export function linkToRun(run: {
  /** The id of the run. */
  readonly id: string;
}): void {
  trace.getActiveSpan()?.addLink({ context: spanContextOf(run.id, run.id), attributes: { "pawl.run_id": run.id } });
}

const maxCachedExecutions = 10_000;
const endedMark = "ended";
/** A step waits no longer than this for the read that tells which trace it belongs to. */
const maxRootWaitMs = 1_000;

class RunTracer implements Listener {
  readonly #pawl: TraceSource;
  readonly #spans: SpanFactory;
  readonly #guard: ErrorGuard;
  readonly #runtime: Runtime;
  readonly #runCache: RunCache;
  /**
   * The start times of the executions whose `step.started` this process has published, and a mark for those that have
   * ended.
   */
  readonly #executionStarts = new LruMap<number | typeof endedMark>(maxCachedExecutions);
  /** The spans of the executions whose code was called in this process. */
  readonly #activeSpans = new LruMap<ActiveSpan>(maxCachedExecutions);

  constructor(pawl: TraceSource, spans: SpanFactory, guard: ErrorGuard, runtime: Runtime) {
    this.#pawl = pawl;
    this.#spans = spans;
    this.#guard = guard;
    this.#runtime = runtime;
    this.#runCache = new RunCache(pawl, (error) => guard.warnOnce(error));
  }

  /** Tags a new run with the active span, so that the run's span can link to it. */
  interceptStart({ tags }: InterceptedStart): void {
    const starter = trace.getActiveSpan()?.spanContext();
    if (starter !== undefined && isSpanContextValid(starter)) tags.push(starterTag(starter));
  }

  /**
   * Makes the span of the step active while its code runs, and the span of the run while the workflow's handler runs.
   */
  interceptCall(message: InterceptedCall): void {
    const { call, node } = message;
    const rootId = this.#runCache.findRootId(message);
    if (!(rootId instanceof Promise)) {
      message.call = () => context.with(this.#contextOf(message, rootId), call);
    } else if (node !== null) {
      message.call = async () => {
        const resolvedRootId = await withTimeout(this.#runtime, maxRootWaitMs, rootId);
        return resolvedRootId === null ? call() : context.with(this.#contextOf(message, resolvedRootId), call);
      };
    }
  }

  #contextOf(message: InterceptedCall, rootId: string): Context {
    const span =
      message.node === null
        ? trace.wrapSpanContext(spanContextOf(rootId, message.runId))
        : this.#activeSpanFor(message, rootId);
    return trace.setSpan(context.active(), span);
  }

  /** A body that was suspended and continues in this process keeps its span. */
  #activeSpanFor(message: InterceptedCall, rootId: string): Span {
    const id = executionIdOf(message);
    const existing = this.#activeSpans.get(id);
    if (existing !== undefined) return existing;
    const span = new ActiveSpan(spanContextOf(rootId, id), this.#runtime);
    this.#activeSpans.set(id, span);
    return span;
  }

  onStatus(change: RunStatusChange): void {
    this.#runCache.recordRun(change);
  }

  onEvent(runEvent: RunEvent): void {
    switch (runEvent.type) {
      case "run.started":
        return this.#runCache.recordStart(runEvent);
      case "run.recovered":
        return this.#guard.whenResolved(this.#pawl.run(runEvent.runId).executions(), (all) =>
          this.#recordAbandonedSteps(runEvent, all),
        );
      case "run.completed":
      case "run.failed":
      case "run.canceled":
        return this.#recordRunEnd(runEvent);
      case "step.started":
        return this.#recordStepStart(runEvent);
    }
    if (isStepEnd(runEvent)) this.#recordStepEnd(runEvent);
  }

  #recordRunEnd(runEvent: RunEvent): void {
    const status = runEvent.type.slice("run.".length);
    const error = status === "failed" ? dataOf(runEvent, "run.failed").error : null;
    const { runId, workflow, parentId, at } = runEvent;
    this.#guard.whenResolved(this.#runCache.takeStartedAt(runId), (startedAt) =>
      this.#guard.whenResolved(this.#runCache.findRootId(runEvent), (rootId) =>
        this.#spans.createSpan({
          name: `run ${workflow}`,
          id: runId,
          parentId,
          rootId,
          // A run that was canceled before it started took no time.
          from: startedAt ?? at,
          to: at,
          attributes: { ...runAttributes(runEvent), "pawl.status": status },
          error,
          links: starterLinks(runEvent.tags),
        }),
      ),
    );
  }

  #recordStepStart(runEvent: RunEvent): void {
    const id = executionIdOf(runEvent);
    if (this.#executionStarts.get(id) === undefined) this.#executionStarts.set(id, runEvent.at);
  }

  #recordStepEnd(runEvent: RunEvent): void {
    const id = executionIdOf(runEvent);
    const startedAt = this.#executionStarts.get(id);
    // Only the first end creates a span: the body of a step that was skipped may still finish later.
    if (startedAt === endedMark) return;
    this.#executionStarts.set(id, endedMark);
    const { ms, error } = stepEndOf(runEvent);
    // `step.started` may be recorded after the body has begun or, if the body was suspended, long before the part that
    // `ms` measures. So the span begins at the earlier of the two times.
    this.#createStepSpan(runEvent, {
      from: Math.min(runEvent.at - ms, startedAt ?? runEvent.at),
      outcome: runEvent.outcome,
      error,
    });
  }

  /** `run.recovered` is the only event that ends the executions that the run's dead owner was executing. */
  #recordAbandonedSteps(
    runEvent: RunEvent,
    executions: Awaited<ReturnType<ReturnType<TraceSource["run"]>["executions"]>>,
  ): void {
    for (const { step, attempt, outcome, startedAt, finishedAt } of executions) {
      if (outcome !== "abandoned" || startedAt === null || finishedAt?.getTime() !== runEvent.at) continue;
      const error = { name: "Error", message: "The worker that executed it died." };
      this.#createStepSpan({ ...runEvent, node: step, attempt }, { from: startedAt.getTime(), outcome, error });
    }
  }

  #createStepSpan(runEvent: RunEvent, { from, outcome, error }: StepEnd): void {
    const { runId, node, attempt, at } = runEvent;
    const activeSpan = this.#activeSpans.take(executionIdOf(runEvent));
    this.#guard.whenResolved(this.#runCache.findRootId(runEvent), (rootId) =>
      this.#spans.createSpan({
        name: `step ${node}`,
        id: executionIdOf(runEvent),
        parentId: runId,
        rootId,
        from,
        to: at,
        attributes: {
          ...runAttributes(runEvent),
          "pawl.step": node ?? "",
          "pawl.attempt": attempt ?? 1,
          ...(outcome === null ? {} : { "pawl.outcome": outcome }),
        },
        error,
        activeSpan,
      }),
    );
  }
}

type StepEnd = Pick<Parameters<SpanFactory["createSpan"]>[0], "from" | "error"> & { readonly outcome: string | null };

/** Resolves to the value, or to null if the value takes longer than `ms`. */
async function withTimeout<Value>(runtime: Runtime, ms: number, value: Promise<Value>): Promise<Value | null> {
  let timer: Timer | undefined;
  const timeout = new Promise<null>((resolve) => {
    timer = runtime.setTimeout(() => resolve(null), ms);
  });
  const valueOrNull = await Promise.race([value, timeout]);
  runtime.clearTimeout(timer);
  return valueOrNull;
}

const executionIdOf = ({ runId, node, attempt }: Pick<RunEvent, "runId" | "node" | "attempt">) =>
  executionId(runId, node ?? "", attempt ?? 1);

function runAttributes({ runId, workflow, version, queue, hero }: RunEvent): Attributes {
  return {
    "pawl.run_id": runId,
    "pawl.workflow": workflow,
    ...(version === "" ? {} : { "pawl.version": version }),
    "pawl.queue": queue,
    ...(hero === null ? {} : { "pawl.hero": `${hero.type}:${hero.id}` }),
  };
}
