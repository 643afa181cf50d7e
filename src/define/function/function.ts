/** Function style: a workflow is an async function that names its steps. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { checkName, checkTags } from "../../core/naming/names.js";
import { type RetryOptions, resolveRetry } from "../../core/naming/retry-policy.js";
import type { Aliases } from "../../core/run/stored-schema.js";
import { checkAliases } from "../aliases.js";
import { type BatchOptions, checkBatch, type ElementOf } from "../batch.js";
import type { SignalHandle } from "../context.js";
import type { ErrorReporter, FailureInfo, Handler, WorkflowDefinition } from "../definition.js";
import { defaultHeroPolicy } from "../hero.js";
import { checkKey, checkLimits, type LimitDefinition, type LimitKey } from "../limit.js";
import { definitionBrand } from "../runnable.js";
import type { InferInput, InferOutput, StandardSchemaV1 } from "../standard-schema.js";
import { parseStartBy } from "../start-by.js";
import { checkHooks, hookNames, type StepHooks } from "../step-hooks.js";

/** Options of `workflow(name, options, handler)`. */
export interface WorkflowOptions<Input = any> extends StepHooks<Input> {
  /** A Standard Schema (zod, valibot, arktype…) for the input. `start` refuses an invalid input with an InvalidInputError. */
  readonly input?: StandardSchemaV1<any, any>;
  /** A Standard Schema for the output. A run with an invalid output fails. */
  readonly output?: StandardSchemaV1<any, any>;
  /** The queue of its runs. Default: a queue of its own, named like the workflow. */
  readonly queue?: string;
  /** The priority of its runs, a whole number: workers claim higher ones first. Default 0. */
  readonly priority?: number;
  /** The retry policy of steps that have none of their own. Default: 4 attempts, 1 s, doubling, with jitter. */
  readonly retry?: RetryOptions;
  /** How long a run may take from its first step on; after that it fails with a TimeoutError. Default: no limit. */
  readonly timeout?: Duration;
  /**
   * How soon a run must begin after it was started, or after the time that its start was delayed to. A run whose code was not
   * executed by then is canceled with the code "EXPIRED". Default: no limit.
   */
  readonly startBy?: Duration;
  /** Pins its runs to workers that have this version. Default: any worker that has the workflow. */
  readonly version?: string;
  /** Tags that each of its runs gets, for `pawl.runs({ tag })`. */
  readonly tags?: readonly string[];
  /**
   * The former names of renamed steps, such as `{ charge: ["bill"] }`. Open runs that recorded a step under a former name
   * keep that name.
   */
  readonly aliases?: Aliases;
  /** The limits in which each of its runs needs a slot, made by `limit(…)`. A run gets all of its slots together. */
  readonly limits?: readonly LimitDefinition[];
  /**
   * Shares what its runs wait for among the keys: between two runs of one key, every other key that has a run waiting gets its
   * turn, however many runs of the one key wait.
   */
  readonly fairBy?: LimitKey;
  /**
   * Gathers starts: the handler gets a list of the inputs of up to `size` starts with the same key, and returns a list of as many
   * outputs. Each start gets its own output.
   */
  readonly batch?: BatchOptions;
  /** Called as the last step of a run that fails, and recorded like a step; not called for a run that is canceled. */
  readonly onFailure?: (info: FailureInfo<Input>) => unknown;
  /** Called for every exception in a step of the workflow, even if the step is retried. */
  readonly onError?: ErrorReporter;
}

type OutputOf<Options, Output> = Options extends { readonly output: infer Schema extends StandardSchemaV1<any, any> }
  ? InferOutput<Schema>
  : Output;

/** Refuses a batch where the handler takes one input; a batch that is no `BatchOptions` is refused by `WorkflowOptions`. */
type NoBatchOf<Options> = Options extends { readonly batch: BatchOptions } ? undefined : BatchOptions;

/**
 * Defines a durable workflow: an async function whose calls of `ctx` are recorded. Throws an InvalidInputError if the name
 * or an option is invalid.
 *
 * @example
 * ```ts
 * export const greet = workflow("greet", async (ctx, name: string) => {
 *   const text = await ctx.step("compose", () => `Hello ${name}`);
 *   await ctx.sleep("cool_down", "2 days");
 *   return ctx.step("send", () => mail.send(text));
 * });
 * ```
 */
export function workflow<Input = void, Output = void>(
  name: string,
  handler: Handler<Input, Output>,
): WorkflowDefinition<Input, Output>;
/**
 * Defines a workflow that gathers its starts, with a schema for the input of one start.
 *
 * @example
 * ```ts
 * const Mail = z.object({ user: z.string(), text: z.string() });
 * export const mail = workflow("mail", { batch: { size: 50, within: "2s" }, input: Mail }, async (ctx, mails) => {
 *   await ctx.step("send", () => mailer.sendAll(mails));
 * });
 * ```
 */
export function workflow<
  Schema extends StandardSchemaV1<any, any>,
  Outputs extends readonly unknown[] | void = void,
  Options extends WorkflowOptions = WorkflowOptions,
>(
  name: string,
  options: Options & {
    /** How its starts are gathered. */
    readonly batch: BatchOptions;
    /** The schema of the input of one start. */
    readonly input: Schema;
  },
  handler: Handler<InferOutput<Schema>[], Outputs>,
): WorkflowDefinition<InferInput<Schema>, OutputOf<Options, ElementOf<Outputs>>>;
/**
 * Defines a durable workflow with a schema: `start` takes an input that the schema accepts, and the handler gets the value
 * that the schema returns.
 *
 * @example
 * ```ts
 * const Order = z.object({ sku: z.string(), quantity: z.coerce.number().int() });
 * export const order = workflow("order", { input: Order }, async (ctx, { sku, quantity }) => {
 *   await ctx.step("reserve", () => stock.reserve(sku, quantity));
 * });
 * ```
 */
export function workflow<
  Schema extends StandardSchemaV1<any, any>,
  Output = void,
  Options extends WorkflowOptions = WorkflowOptions,
>(
  name: string,
  options: Options & {
    /** Each start has a run of its own. */
    readonly batch?: undefined;
    /** The schema of the input. */
    readonly input: Schema;
    /** The schema of the output. */
    readonly output?: StandardSchemaV1<Output, any>;
  },
  handler: Handler<InferOutput<Schema>, Output>,
): WorkflowDefinition<InferInput<Schema>, OutputOf<Options, Output>>;
/**
 * Defines a workflow that gathers its starts: the handler gets a list of inputs and returns a list of as many outputs, in the
 * same order. Each start takes one input and gets its own output.
 *
 * @example
 * ```ts
 * export const mail = workflow(
 *   "mail",
 *   { batch: { key: "input.user", size: 50, within: "2s" } },
 *   async (ctx, mails: { user: string; text: string }[]) => {
 *     const ids = await ctx.step("send", () => mailer.sendAll(mails));
 *     return ids; // one for each mail
 *   },
 * );
 * ```
 */
export function workflow<
  Input = void,
  Outputs extends readonly unknown[] | void = void,
  Options extends WorkflowOptions = WorkflowOptions,
>(
  name: string,
  options: Options & {
    /** How its starts are gathered. */
    readonly batch: BatchOptions;
    /** No schema: the handler's own type of the inputs applies. */
    readonly input?: NoSchema;
  },
  handler: Handler<Input[], Outputs>,
): WorkflowDefinition<Input, OutputOf<Options, ElementOf<Outputs>>>;
/**
 * Defines a durable workflow with options.
 *
 * @example
 * ```ts
 * export const report = workflow("report", { retry: { attempts: 10 }, timeout: "1 hour" }, async (ctx) => {
 *   await ctx.step("render", () => render());
 * });
 * ```
 */
export function workflow<Input = void, Output = void, Options extends WorkflowOptions = WorkflowOptions>(
  name: string,
  options: Options & {
    /** Each start has a run of its own. */
    readonly batch?: NoBatchOf<Options>;
    /** No schema: the handler's own type of the input applies. */
    readonly input?: NoSchema;
    /** The schema of the output. */
    readonly output?: StandardSchemaV1<Output, any>;
  },
  handler: Handler<Input, Output>,
): WorkflowDefinition<Input, OutputOf<Options, Output>>;
export function workflow(
  name: string,
  optionsOrHandler: WorkflowOptions | Handler<any, any>,
  maybeHandler?: Handler<any, any>,
): WorkflowDefinition<any, any> {
  const [options, handler] =
    typeof optionsOrHandler === "function" ? [{}, optionsOrHandler] : [optionsOrHandler, maybeHandler];
  checkName("workflow", name);
  if (typeof handler !== "function") throw new InvalidInputError(`Workflow "${name}" needs a function as its handler.`);
  checkOptions(`Workflow "${name}"`, options, workflowOptions);
  return Object.freeze({
    [definitionBrand]: true as const,
    name,
    style: "function" as const,
    version: options.version === undefined ? "" : checkName("version", options.version),
    queue: options.queue === undefined ? null : checkName("queue", options.queue),
    priority: checkPriority(options.priority ?? 0),
    retry: resolveRetry(options.retry),
    timeoutMs: options.timeout === undefined ? null : parseDuration(options.timeout, `timeout of workflow "${name}"`),
    startByMs: options.startBy === undefined ? null : parseStartBy(options.startBy, `startBy of workflow "${name}"`),
    tags: checkTags(options.tags ?? []),
    inputSchema: checkSchema(name, "input", options.input),
    outputSchema: checkSchema(name, "output", options.output),
    onFailure: options.onFailure ?? null,
    onError: options.onError ?? null,
    hooks: checkHooks(`workflow "${name}"`, options),
    hero: defaultHeroPolicy,
    aliases: checkAliases(`workflow "${name}"`, options.aliases),
    limits: checkLimits(`workflow "${name}"`, options.limits),
    fairBy: options.fairBy === undefined ? null : checkKey(`fairBy of workflow "${name}"`, options.fairBy),
    batch: checkBatch(`workflow "${name}"`, options.batch),
    declared: null,
    nodeRetryDelayMs: null,
    handler,
  });
}

export const workflowOptions: ReadonlySet<string> = new Set([
  "input",
  "output",
  "queue",
  "priority",
  "retry",
  "timeout",
  "startBy",
  "version",
  "tags",
  "aliases",
  "limits",
  "fairBy",
  "batch",
  "onFailure",
  "onError",
  ...hookNames,
] satisfies (keyof WorkflowOptions)[]);

function checkSchema(
  name: string,
  what: "input" | "output",
  schema: StandardSchemaV1 | undefined,
): StandardSchemaV1 | null {
  if (schema === undefined) return null;
  if (typeof schema?.["~standard"]?.validate === "function") return schema;
  throw new InvalidInputError(
    `The ${what} of workflow "${name}" is not a Standard Schema; pass a schema made by zod, valibot, arktype…, or leave it out.`,
  );
}

/** A type that no schema has. It makes the compiler's error for an `input` that is no schema name the missing property. */
type NoSchema = StandardSchemaV1<never, never> | undefined;

/** Refuses priorities that would not fit the integers of every database. */
export function checkPriority(priority: unknown): number {
  if (typeof priority === "number" && Number.isInteger(priority) && Math.abs(priority) <= 1_000_000) return priority;
  throw new InvalidInputError(
    `A priority must be a whole number between -1,000,000 and 1,000,000, not ${String(priority)}.`,
  );
}

/**
 * Makes a handle of a signal: its name with the type of its payload, for `ctx.waitForSignal` and `run.signal`.
 *
 * @example
 * ```ts
 * const approved = signal<{ by: string }>("approved");
 * await run.signal(approved, { by: "ada" }); // the compiler checks the payload
 * ```
 */
export function signal<Payload = unknown>(name: string): SignalHandle<Payload> {
  return { signal: checkName("signal", name) };
}
