/** Jobs: named pieces of code that the nodes of graphs run, on whichever worker has them. */

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

/** What a job gets beside its arguments. */
export interface JobTools {
  /** The run whose node this is. */
  readonly run: { readonly id: string };
  readonly node: { readonly id: string; readonly name: string };
  /** 1 for the first attempt at the node. */
  readonly attempt: number;
  /** The same for every attempt at this node of this run: hand it to the payment provider. */
  readonly idempotencyKey: string;
  readonly abortSignal: AbortSignal;
  readonly log: Logger;
  readonly progress: StepTools["progress"];
  /** For jobs that are workflows themselves: steps, sleeps, signals, children. */
  readonly ctx: WorkflowContext<unknown>;
}

export interface JobOptions extends Pick<WorkflowOptions, "queue" | "priority" | "onError" | "tags"> {
  /** What happens when it throws: 4 attempts, 1 s doubling, jitter, unless said otherwise. */
  readonly retry?: RetryOptions;
  /** Per attempt. */
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

export interface JobDefinition<Args = any, Output = any> extends WorkflowDefinition<JobInput<Args>, Output> {
  /** By which graphs name it. */
  readonly job: string;
}

/** Then the node has failed, and its graph is paused, whatever the job's `retry` says. */
const maxAttempts = 1_000;

/**
 * Defines a job.
 *
 * ```ts
 * const resize = job("Resize", async (args: { file: string }, { node }) => images.resize(args.file));
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
    options as WorkflowOptions & { input?: undefined; output?: undefined },
    (ctx: WorkflowContext<JobInput<Args>>, input: JobInput<Args>) => fn(input.args, toolsOf(ctx, input)),
  );
  return Object.freeze({
    ...definition,
    job: name,
    nodeRetryDelayMs: (error: unknown, { failures }: JobInput, random: number) => {
      // Each attempt is a run of its own, and two events in the log of the graph: there has to be an end to it.
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
