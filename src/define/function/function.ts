/** Function style: a workflow is an async function that names its steps. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { checkName, checkTags } from "../../core/naming/names.js";
import { type RetryOptions, resolveRetry } from "../../core/naming/retry-policy.js";
import type { Aliases } from "../../core/run/stored-schema.js";
import { checkAliases } from "../aliases.js";
import type { SignalHandle } from "../context.js";
import type { ErrorReporter, FailureInfo, Handler, WorkflowDefinition } from "../definition.js";
import { defaultHeroPolicy } from "../hero.js";
import { definitionBrand } from "../runnable.js";
import type { InferInput, InferOutput, StandardSchemaV1 } from "../standard-schema.js";
import { checkHooks, hookNames, type StepHooks } from "../step-hooks.js";

export interface WorkflowOptions<Input = any> extends StepHooks<Input> {
  /** A Standard Schema (zod, valibot, arktype…): a bad input is refused by `start`. */
  readonly input?: StandardSchemaV1<any, any>;
  readonly output?: StandardSchemaV1<any, any>;
  /** Default: a queue of its own, named like the workflow. */
  readonly queue?: string;
  /** Higher goes first; default 0. */
  readonly priority?: number;
  /** The default for its steps. */
  readonly retry?: RetryOptions;
  /** How long a run may take from its first step on; then it fails with a TimeoutError. */
  readonly timeout?: Duration;
  /** Pins open runs to workers that have this version. */
  readonly version?: string;
  readonly tags?: readonly string[];
  /**
   * For each step that was renamed, the names that it had before: `{ charge: ["bill"] }`. Open runs that have it under an
   * older name go on with that name.
   */
  readonly aliases?: Aliases;
  /** Called as a last, recorded step when a run fails. */
  readonly onFailure?: (info: FailureInfo<Input>) => unknown;
  /** Told of every exception in its steps. */
  readonly onError?: ErrorReporter;
}

type OutputOf<Options, Output> = Options extends { readonly output: infer Schema extends StandardSchemaV1<any, any> }
  ? InferOutput<Schema>
  : Output;

/**
 * Defines a durable workflow.
 *
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
/** With a schema for the input: `start` takes what the schema takes, the handler gets what it makes of it. */
export function workflow<
  Schema extends StandardSchemaV1<any, any>,
  Output = void,
  Options extends WorkflowOptions = WorkflowOptions,
>(
  name: string,
  options: Options & { readonly input: Schema; readonly output?: StandardSchemaV1<Output, any> },
  handler: Handler<InferOutput<Schema>, Output>,
): WorkflowDefinition<InferInput<Schema>, OutputOf<Options, Output>>;
export function workflow<Input = void, Output = void, Options extends WorkflowOptions = WorkflowOptions>(
  name: string,
  options: Options & { readonly input?: NoSchema; readonly output?: StandardSchemaV1<Output, any> },
  handler: Handler<Input, Output>,
): WorkflowDefinition<Input, OutputOf<Options, Output>>;
export function workflow(
  name: string,
  optionsOrHandler: WorkflowOptions | Handler<any, any>,
  maybeHandler?: Handler<any, any>,
): WorkflowDefinition {
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
    tags: checkTags(options.tags ?? []),
    inputSchema: checkSchema(name, "input", options.input),
    outputSchema: checkSchema(name, "output", options.output),
    onFailure: options.onFailure ?? null,
    onError: options.onError ?? null,
    hooks: checkHooks(`workflow "${name}"`, options),
    hero: defaultHeroPolicy,
    aliases: checkAliases(`workflow "${name}"`, options.aliases),
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
  "version",
  "tags",
  "aliases",
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
    `The ${what} of workflow "${name}" is not a Standard Schema; give one that zod, valibot, arktype… made, or leave it out.`,
  );
}

/** What no schema is: it lets the compiler say of an input that is none what it lacks. */
type NoSchema = StandardSchemaV1<never, never> | undefined;

/** Priorities are whole numbers that fit every database's integer. */
export function checkPriority(priority: unknown): number {
  if (typeof priority === "number" && Number.isInteger(priority) && Math.abs(priority) <= 1_000_000) return priority;
  throw new InvalidInputError(
    `A priority is a whole number between -1,000,000 and 1,000,000, not ${String(priority)}.`,
  );
}

/** A signal's name with the type of its payload. */
export function signal<Payload = unknown>(name: string): SignalHandle<Payload> {
  return { signal: checkName("signal", name) };
}
