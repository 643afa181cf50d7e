/**
 * Runs and step executions as spans: one tree for a run and all that descends from it, whichever processes had a part in
 * it. Each process makes the spans of what it has itself made durable, when that is over.
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
import { checkOptions } from "../core/naming/check-options.js";
import { executionId } from "../core/naming/ids.js";
import { dataOf } from "../core/run/event.js";
import type { Runtime, Timer } from "../runtime/runtime.js";
import { systemRuntime } from "../runtime/system.js";
import type { ToldCall, ToldStart } from "./around.js";
import { KnownRuns, type RunSource } from "./known-runs.js";
import { Guard, type Listener, type Listening, type ListeningOptions, listen, takePart } from "./listen.js";
import { ActiveSpan } from "./otel-active-span.js";
import { Spans, spanContextOf } from "./otel-spans.js";
import { Recent } from "./recent.js";
import { starterLinks, starterTag } from "./starter-link.js";
import { endOf, isStepEnd } from "./step-ends.js";
import type { ToldEvent, ToldStatus } from "./tell.js";

/** What tracing asks of Pawl. */
export interface Traceable extends RunSource {
  run(id: string): ReturnType<RunSource["run"]> & {
    executions(): Promise<
      readonly {
        readonly step: string;
        readonly attempt: number;
        readonly outcome: string | null;
        readonly startedAt: Date | null;
        readonly finishedAt: Date | null;
      }[]
    >;
  };
}

export interface TraceOptions extends ListeningOptions {
  /** Default: the global one. For one tree across processes it needs a `RunIdGenerator`. */
  readonly tracerProvider?: TracerProvider;
}

const traceOptions = new Set<string>(["tracerProvider", "logger"] satisfies (keyof TraceOptions)[]);

/**
 * Makes a span of each run and of each step execution that ends in this process, until it is stopped.
 *
 * ```ts
 * const tracing = traceRuns(pawl);
 * …
 * await tracing.stop();
 * await pawl.close();
 * ```
 */
export function traceRuns(pawl: Traceable, options: TraceOptions = {}): Listening {
  checkOptions("traceRuns()", options, traceOptions);
  const provider = options.tracerProvider ?? trace;
  const guard = new Guard("Tracing", options);
  const tracer = new RunTracer(pawl, new Spans(provider.getTracer("pawl")), guard, systemRuntime);
  const leave = takePart(tracer, guard);
  const listening = listen(tracer, guard);
  return {
    stop: () => {
      leave();
      return listening.stop();
    },
  };
}

/**
 * Adds a link to the active span of the calling code, if there is one: to the span that the run will have.
 *
 * ```ts
 * linkToRun(await pawl.start(order, input));
 * ```
 *
 * @param run what `start` returned: a run without a parent
 */
export function linkToRun(run: { readonly id: string }): void {
  trace.getActiveSpan()?.addLink({ context: spanContextOf(run.id, run.id), attributes: { "pawl.run_id": run.id } });
}

const remembered = 10_000;
const ended = "ended";
/** A step does not wait longer than this to learn which trace it belongs to. */
const patienceMs = 1_000;

class RunTracer implements Listener {
  readonly #pawl: Traceable;
  readonly #spans: Spans;
  readonly #guard: Guard;
  readonly #runtime: Runtime;
  readonly #known: KnownRuns;
  /** When executions began, as far as the log was told; and which have ended. */
  readonly #executions = new Recent<number | typeof ended>(remembered);
  /** Of those whose code was called here. */
  readonly #active = new Recent<ActiveSpan>(remembered);

  constructor(pawl: Traceable, spans: Spans, guard: Guard, runtime: Runtime) {
    this.#pawl = pawl;
    this.#spans = spans;
    this.#guard = guard;
    this.#runtime = runtime;
    this.#known = new KnownRuns(pawl, (error) => guard.complain(error));
  }

  /** What is started here is linked with the span that it is started in. */
  start({ tags }: ToldStart): void {
    const starter = trace.getActiveSpan()?.spanContext();
    if (starter !== undefined && isSpanContextValid(starter)) tags.push(starterTag(starter));
  }

  /** While its code runs, the span of a step is the active one; outside of steps, that of the run. */
  call(told: ToldCall): void {
    const { call, node } = told;
    const rootId = this.#known.rootOf(told);
    if (!(rootId instanceof Promise)) {
      told.call = () => context.with(this.#contextOf(told, rootId), call);
    } else if (node !== null) {
      told.call = async () => {
        const known = await within(this.#runtime, patienceMs, rootId);
        return known === null ? call() : context.with(this.#contextOf(told, known), call);
      };
    }
  }

  #contextOf(told: ToldCall, rootId: string): Context {
    const span =
      told.node === null ? trace.wrapSpanContext(spanContextOf(rootId, told.runId)) : this.#spanOf(told, rootId);
    return trace.setSpan(context.active(), span);
  }

  /** A body that rested and goes on here has the same one. */
  #spanOf(told: ToldCall, rootId: string): Span {
    const id = idOf(told);
    const known = this.#active.get(id);
    if (known !== undefined) return known;
    const span = new ActiveSpan(spanContextOf(rootId, id), this.#runtime);
    this.#active.set(id, span);
    return span;
  }

  run(told: ToldStatus): void {
    this.#known.hear(told);
  }

  event(told: ToldEvent): void {
    switch (told.type) {
      case "run.started":
        return this.#known.hearOfStart(told);
      case "run.recovered":
        return this.#guard.with(this.#pawl.run(told.runId).executions(), (all) => this.#abandoned(told, all));
      case "run.completed":
      case "run.failed":
      case "run.canceled":
        return this.#runEnded(told);
      case "step.started":
        return this.#stepBegan(told);
    }
    if (isStepEnd(told)) this.#stepEnded(told);
  }

  #runEnded(told: ToldEvent): void {
    const status = told.type.slice("run.".length);
    const error = status === "failed" ? dataOf(told, "run.failed").error : null;
    const { runId, workflow, parentId, at } = told;
    this.#guard.with(this.#known.startedAtOf(runId), (startedAt) =>
      this.#guard.with(this.#known.rootOf(told), (rootId) =>
        this.#spans.make({
          name: `run ${workflow}`,
          id: runId,
          parentId,
          rootId,
          // Canceled before it began: it took no time.
          from: startedAt ?? at,
          to: at,
          attributes: { ...aboutRun(told), "pawl.status": status },
          error,
          links: starterLinks(told.tags),
        }),
      ),
    );
  }

  #stepBegan(told: ToldEvent): void {
    const id = idOf(told);
    if (this.#executions.get(id) === undefined) this.#executions.set(id, told.at);
  }

  #stepEnded(told: ToldEvent): void {
    const id = idOf(told);
    const began = this.#executions.get(id);
    // The first end stands: a body may still come to its own when its step was passed over.
    if (began === ended) return;
    this.#executions.set(id, ended);
    const { ms, error } = endOf(told);
    // Its start is recorded late, or long before, if its body rested meanwhile.
    this.#step(told, { from: Math.min(told.at - ms, began ?? told.at), outcome: told.outcome, error });
  }

  /** The last owner of the run has died; these have no other end in the log than that. */
  #abandoned(told: ToldEvent, executions: Awaited<ReturnType<ReturnType<Traceable["run"]>["executions"]>>): void {
    for (const { step, attempt, outcome, startedAt, finishedAt } of executions) {
      if (outcome !== "abandoned" || startedAt === null || finishedAt?.getTime() !== told.at) continue;
      const error = { name: "Error", message: "The worker that executed it died." };
      this.#step({ ...told, node: step, attempt }, { from: startedAt.getTime(), outcome, error });
    }
  }

  #step(told: ToldEvent, { from, outcome, error }: StepEnd): void {
    const { runId, node, attempt, at } = told;
    const active = this.#active.take(idOf(told));
    this.#guard.with(this.#known.rootOf(told), (rootId) =>
      this.#spans.make({
        name: `step ${node}`,
        id: idOf(told),
        parentId: runId,
        rootId,
        from,
        to: at,
        attributes: {
          ...aboutRun(told),
          "pawl.step": node ?? "",
          "pawl.attempt": attempt ?? 1,
          ...(outcome === null ? {} : { "pawl.outcome": outcome }),
        },
        error,
        active,
      }),
    );
  }
}

type StepEnd = Pick<Parameters<Spans["make"]>[0], "from" | "error"> & { readonly outcome: string | null };

/** null when it takes longer. */
async function within<Value>(runtime: Runtime, ms: number, value: Promise<Value>): Promise<Value | null> {
  let timer: Timer | undefined;
  const tooLong = new Promise<null>((resolve) => {
    timer = runtime.setTimeout(() => resolve(null), ms);
  });
  const first = await Promise.race([value, tooLong]);
  runtime.clearTimeout(timer);
  return first;
}

const idOf = ({ runId, node, attempt }: Pick<ToldEvent, "runId" | "node" | "attempt">) =>
  executionId(runId, node ?? "", attempt ?? 1);

function aboutRun({ runId, workflow, version, queue, hero }: ToldEvent): Attributes {
  return {
    "pawl.run_id": runId,
    "pawl.workflow": workflow,
    ...(version === "" ? {} : { "pawl.version": version }),
    "pawl.queue": queue,
    ...(hero === null ? {} : { "pawl.hero": `${hero.type}:${hero.id}` }),
  };
}
