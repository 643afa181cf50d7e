/** What a class and its steps can be told, checked as soon as it is said. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { checkName, checkTags } from "../../core/naming/names.js";
import { type RetryOptions, resolveRetry } from "../../core/naming/retry-policy.js";
import type { Aliases } from "../../core/run/stored-schema.js";
import { checkAliases } from "../aliases.js";
import type { Awaitable } from "../awaitable.js";
import type { ErrorReporter, FailureInfo } from "../definition.js";
import type { ArgsOf } from "../dynamic/builder.js";
import { isJob, type JobDefinition } from "../dynamic/job.js";
import { checkPriority } from "../function/function.js";
import type { StandardSchemaV1 } from "../standard-schema.js";
import type { Condition } from "./class-types.js";
import { checkActions, checkPolicy, type ExceptionPolicy, type TerminalAction } from "./exceptions.js";

interface ExceptionOptions {
  /** What an exception means; the most specific rule wins. Default "pause". */
  readonly onException?: ExceptionPolicy;
  /** How often in a row "reattempt" is done; default 100. */
  readonly maxReattempts?: number;
  /** What happens after that; default "pause". */
  readonly terminalAction?: TerminalAction;
  /** How long to wait before a reattempt: 1 s, doubling, up to an hour, unless said otherwise. `attempts` is `maxReattempts` here. */
  readonly retry?: Omit<RetryOptions, "attempts" | "retryIf">;
}

export interface ClassOptions<W> extends ExceptionOptions {
  /** By which runs and workers know it; default: the name of the class. */
  readonly name?: string;
  /** Default: a queue of its own, named like the workflow. */
  readonly queue?: string;
  /** Higher goes first; default 0. */
  readonly priority?: number;
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
  /** A Standard Schema (zod, valibot, arktype…): a bad input is refused by `start`. */
  readonly input?: StandardSchemaV1<any, any>;
  readonly output?: StandardSchemaV1<any, any>;
  /** A run whose hero is gone goes on, with `null` for it, instead of being canceled: `Workflow<User | null>`. */
  readonly mayProceedWithoutHero?: MayProceed<W>;
  /** Several runs may be active for one hero. */
  readonly allowMultiple?: boolean;
  /** Told of every exception in its steps. */
  readonly onError?: ErrorReporter;
  /** Called as a last, recorded step when a run fails. */
  readonly onFailure?: (info: FailureInfo<InputTo<W>>) => unknown;
  /** Carries the type only. */
  readonly __of?: (w: W) => void;
}

type InputTo<W> = W extends { readonly input: infer Input } ? Input : any;

/** True only if the code of the class expects that its hero is null. */
type MayProceed<W> = W extends { readonly hero: infer Hero }
  ? null extends Hero
    ? boolean
    : false | ExpectsWorkflowOf<Hero | null>
  : boolean;

/** Never given: it tells the compiler's readers how the class has to be written. */
interface ExpectsWorkflowOf<Hero> {
  readonly [expected]: Hero;
}
declare const expected: unique symbol;

export interface StepDeclarationOptions<W> extends ExceptionOptions {
  /** How long after the step before it, or after the start. */
  readonly wait?: Duration;
  readonly skipIf?: Condition<W>;
  /** Runs the step only when true. */
  readonly if?: Condition<W>;
  readonly beforeStep?: string;
  readonly afterStep?: string;
  /** What it comes after, instead of the step before it: names of steps and tasks. null: nothing, it begins at once. */
  readonly dependsOn?: string | readonly string[] | null;
  /** What it comes after beside the step before it. */
  readonly alsoDependsOn?: string | readonly string[];
  /** Per attempt. */
  readonly timeout?: Duration;
  /** When the worker dies while the step runs: again (default), or at most once and an operator decides. */
  readonly onCrash?: "rerun" | "pause";
  /** Only workers that serve this queue run the step. */
  readonly queue?: string;
  /** How urgent the run is while it waits for this step. */
  readonly priority?: number;
}

/** Options of a step that runs a job, on any worker that has it, instead of a function or method. */
export type JobStepOptions<
  W,
  Job extends JobDefinition | string = JobDefinition | string,
> = StepDeclarationOptions<W> & {
  /** What `job(…)` made, or its name. */
  readonly job: Job;
} & JobArgsOption<W, ArgsOf<Job>>;

/** What the job gets: a value, or a function that makes it. Left out when the job takes nothing. */
type JobArgsOption<W, Args> = [Args] extends [void]
  ? { readonly args?: undefined }
  : unknown extends Args
    ? { readonly args?: ((w: W) => unknown) | object | string | number | boolean | bigint | null }
    : { readonly args: Args | ((w: W) => Awaitable<Args>) };

export interface ResumableStepOptions<W> extends StepDeclarationOptions<W> {
  /** Its execution is interrupted after so long, and continued by a successor. */
  readonly maxRuntime?: Duration;
  /** The same after so many items. */
  readonly maxIterations?: number;
  /**
   * "awaited" (default): the next item begins when the cursor is durable, so that a crash repeats at most the item in
   * flight. "relaxed": it begins at once, and a crash may repeat a few.
   */
  readonly checkpoint?: "awaited" | "relaxed";
}

/** What a step of any kind may have been given, as it is kept. */
export interface AnyStepOptions extends ResumableStepOptions<any> {
  readonly job?: JobDefinition | string;
  readonly args?: unknown;
}

type Check = (value: any, what: string) => unknown;

const exceptionChecks: Record<keyof ExceptionOptions, Check> = {
  onException: checkPolicy,
  maxReattempts: (value, what) => checkCount(value, what, 0),
  terminalAction: (value, what) => checkActions(value, what, ["pause", "cancel", "skip", "fail"]),
  retry: (value, what) => {
    if (typeof value !== "object" || value === null) throw new InvalidInputError(`The ${what} must be an object.`);
    return resolveRetry(value);
  },
};

const classChecks: Record<Exclude<keyof ClassOptions<any>, "__of">, Check> = {
  ...exceptionChecks,
  name: (value) => checkName("workflow", value),
  queue: (value) => checkName("queue", value),
  priority: checkPriority,
  timeout: parseDuration,
  version: (value) => checkName("version", value),
  tags: (value, what) => {
    if (!Array.isArray(value)) throw new InvalidInputError(`The ${what} must be a list.`);
    return checkTags(value);
  },
  aliases: (value, what) => checkAliases(what, value),
  input: checkSchema,
  output: checkSchema,
  mayProceedWithoutHero: checkBoolean,
  allowMultiple: checkBoolean,
  onError: checkFunction,
  onFailure: checkFunction,
};

const stepChecks: Record<keyof StepDeclarationOptions<any> | "job" | "args", Check> = {
  ...exceptionChecks,
  wait: parseDuration,
  skipIf: checkCondition,
  if: checkCondition,
  beforeStep: (value) => checkName("step", value),
  afterStep: (value) => checkName("step", value),
  // null: nothing. There is no such thing to add.
  dependsOn: (value, what) => value === null || checkNames(value, what),
  alsoDependsOn: checkNames,
  job: (value, what) => {
    if (typeof value === "string") return checkName("job", value);
    if (isJob(value)) return value;
    throw new InvalidInputError(`The ${what} is one made by job(…), or the name of one.`);
  },
  args: () => {},
  timeout: parseDuration,
  onCrash: (value, what) => checkActions(value, what, ["rerun", "pause"]),
  queue: (value) => checkName("queue", value),
  priority: checkPriority,
};

const resumableChecks: Record<keyof AnyStepOptions, Check> = {
  ...stepChecks,
  maxRuntime: parseDuration,
  maxIterations: (value, what) => checkCount(value, what, 1),
  checkpoint: (value, what) => checkActions(value, what, ["awaited", "relaxed"]),
};

export const checkClassOptions = (options: unknown, owner: string) => checkEachOption(options, owner, classChecks);
export const checkStepOptions = (options: unknown, owner: string) => checkEachOption(options, owner, stepChecks);
export const checkResumableOptions = (options: unknown, owner: string) =>
  checkEachOption(options, owner, resumableChecks);

function checkEachOption(options: unknown, owner: string, checks: Readonly<Record<string, Check>>): void {
  checkOptions(capitalize(owner), options, new Set(Object.keys(checks)));
  for (const [name, value] of Object.entries(options as object))
    if (value !== undefined) (checks[name] as Check)(value, `${name} of ${owner}`);
}

const capitalize = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

export function checkCondition(value: unknown, what: string): void {
  if (typeof value === "boolean" || typeof value === "function" || typeof value === "string") return;
  throw new InvalidInputError(`The ${what} must be a function, the name of a member, or a boolean.`);
}

function checkCount(value: unknown, what: string, min: number): void {
  if (value === Number.POSITIVE_INFINITY) return;
  if (typeof value === "number" && Number.isInteger(value) && value >= min) return;
  throw new InvalidInputError(`The ${what} must be a whole number of at least ${min}, not ${String(value)}.`);
}

function checkBoolean(value: unknown, what: string): void {
  if (typeof value !== "boolean") throw new InvalidInputError(`The ${what} must be true or false.`);
}

function checkFunction(value: unknown, what: string): void {
  if (typeof value !== "function") throw new InvalidInputError(`The ${what} must be a function.`);
}

function checkSchema(schema: StandardSchemaV1 | undefined, what: string): void {
  if (typeof schema?.["~standard"]?.validate === "function") return;
  throw new InvalidInputError(
    `The ${what} is not a Standard Schema; pass a schema made by zod, valibot, arktype…, or leave it out.`,
  );
}

function checkNames(value: unknown, what: string): void {
  const names = Array.isArray(value) ? value : [value];
  for (const name of names) {
    if (typeof name !== "string") throw new InvalidInputError(`The ${what} takes names of steps and tasks.`);
    checkName("step", name);
  }
}
