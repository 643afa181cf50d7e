/** Jobs: named functions that the nodes of graphs run, on any worker that has the job. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import type { Duration } from "../../core/naming/duration.js";
import { checkName } from "../../core/naming/names.js";
import type { RetryOptions } from "../../core/naming/retry-policy.js";
import { jobWorkflow } from "../../core/naming/route.js";
import type { JobInput } from "../../core/run/stored-schema.js";
import type { Logger, StepTools, WorkflowContext } from "../context.js";
import { isDefinition, type WorkflowDefinition } from "../definition.js";
import { type WorkflowOptions, workflow } from "../function/function.js";
import { reactByRetryPolicy } from "../retry-reaction.js";

/** The second argument of a job's function. */
export interface JobTools {
  /** The run of the graph. */
  readonly run: {
    /** The id of the run. */
    readonly id: string;
  };
  /** The node that runs the job. */
  readonly node: {
    /** The id of the node. */
    readonly id: string;
    /** The name of the node. */
    readonly name: string;
  };
  /** The number of this attempt at the node, from 1. */
  readonly attempt: number;
  /** A key for requests to other services, such as a payment provider. It is the same for all attempts at this node of this run. */
  readonly idempotencyKey: string;
  /** Fires when the attempt times out, when the run is canceled and when the worker has to give up the job. */
  readonly abortSignal: AbortSignal;
  /** The logger that was given to `connect`. */
  readonly log: Logger;
  /** Stores the progress of the job. Each call overwrites the progress of the previous call. */
  readonly progress: StepTools["progress"];
  /** The `ctx` of the job, which may make durable calls like a workflow: steps, sleeps, signals, children. */
  readonly ctx: WorkflowContext<unknown>;
}

/** Options of `job(name, fn, options)`. */
export interface JobOptions extends Pick<WorkflowOptions, "queue" | "priority" | "onError" | "tags"> {
  /** How often and how soon the job is tried again after it throws. Default: 4 attempts, 1 s, doubling, with jitter. */
  readonly retry?: RetryOptions;
  /** The time limit of each attempt. Default: none. */
  readonly timeout?: Duration;
}

const jobOptions = new Set<string>([
  "queue",
  "priority",
  "onError",
  "tags",
  "retry",
  "timeout",
] satisfies (keyof JobOptions)[]);

/** A job, as `job(…)` returns it. */
export interface JobDefinition<Args = any, Output = any> extends WorkflowDefinition<JobInput<Args>, Output> {
  /** The name of the job, by which graphs refer to the job. */
  readonly job: string;
}

/** After this many attempts, the node fails and its run is paused, even if the job's `retry` allows more attempts. */
const maxAttempts = 1_000;

/**
 * Defines a job: a named function that the nodes of graphs, and steps and tasks of classes, can run on any worker that has
 * it (`pawl.worker({ jobs })`). Throws an InvalidInputError if the name or an option is invalid.
 *
 * @example
 * ```ts
 * const resize = job("Resize", async (args: { file: string }, { idempotencyKey }) => {
 *   await images.resize(args.file, { idempotencyKey });
 * });
 * ```
 */
export function job<Args = void, Output = void>(
  name: string,
  fn: (args: Args, tools: JobTools) => Output | Promise<Output>,
  options: JobOptions = {},
): JobDefinition<Args, Output> {
  checkName("job", name, 190);
  if (typeof fn !== "function") throw new InvalidInputError(`Job "${name}" needs a function.`);
  checkOptions(`Job "${name}"`, options, jobOptions);
  const definition = workflow(
    jobWorkflow(name),
    options as WorkflowOptions & { input?: undefined; output?: undefined; batch?: undefined },
    (ctx: WorkflowContext<JobInput<Args>>, input: JobInput<Args>) => fn(input.args, toolsOf(ctx, input)),
  );
  return Object.freeze({
    ...definition,
    job: name,
    nodeRetryDelayMs: (error: unknown, { failures }: JobInput, random: number) => {
      // Each attempt creates a run and adds two events to the log of the graph's run, so the number of attempts is limited.
      if (failures + 1 >= maxAttempts) return null;
      const history = { failures, totalFailures: failures, reattempts: failures, postponed: 0 };
      const reaction = reactByRetryPolicy(definition.retry, error, history, random);
      return reaction.kind === "reattempt" ? reaction.waitMs : null;
    },
  }) as JobDefinition<any, any>;
}

export function isJob(value: unknown): value is JobDefinition {
  return isDefinition(value) && typeof (value as Partial<JobDefinition>).job === "string";
}

function toolsOf(ctx: WorkflowContext<unknown>, { run, node, attempt, key }: JobInput): JobTools {
  return {
    run: { id: run },
    node,
    attempt,
    idempotencyKey: key ?? `${run}:${node.id}`,
    log: ctx.log,
    progress: (done, total, message) => ctx.progress(done, total, message),
    ctx,
    get abortSignal() {
      return ctx.abortSignal;
    },
  };
}
