/** The options of a class and its steps, and the checks that are made when the class declares them. */

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
import { checkKey, checkLimits, checkStepLimit, checkUnits, type LimitDefinition, type LimitKey } from "../limit.js";
import type { StandardSchemaV1 } from "../standard-schema.js";
import { parseStartBy } from "../start-by.js";
import type { Condition } from "./class-types.js";
import { checkActions, checkPolicy, type ExceptionPolicy, type TerminalAction } from "./exceptions.js";

/** The options that a class and each of its steps have for exceptions. */
interface ExceptionOptions {
  /** What happens after an exception in a step; the most specific rule wins. Default "pause". */
  readonly onException?: ExceptionPolicy;
  /** How many reattempts in a row "reattempt" makes at most. Default 100. */
  readonly maxReattempts?: number;
  /** What happens when the reattempts are used up. Default "pause". */
  readonly terminalAction?: TerminalAction;
  /** The delays before reattempts, which `maxReattempts` limits. Default: 1 s, doubling, at most an hour, with jitter. */
  readonly retry?: Omit<RetryOptions, "attempts" | "retryIf">;
}

/** Options of a workflow class: `this.options({ … })` in its static block. */
export interface ClassOptions<W> extends ExceptionOptions {
  /** The name of the workflow. Runs and workers refer to the workflow by it. Default: the name of the class. */
  readonly name?: string;
  /** The queue of its runs. Default: a queue of its own, named like the workflow. */
  readonly queue?: string;
  /** The priority of its runs, a whole number: workers claim higher ones first. Default 0. */
  readonly priority?: number;
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
  /** A Standard Schema (zod, valibot, arktype…) for the input. `start` refuses an invalid input with an InvalidInputError. */
  readonly input?: StandardSchemaV1<any, any>;
  /** A Standard Schema for the output. A run with an invalid output fails. */
  readonly output?: StandardSchemaV1<any, any>;
  /**
   * Continues a run whose hero no longer exists, with `null` for the hero, instead of canceling it. The class must allow
   * that: `Workflow<User | null>`. Default false.
   */
  readonly mayProceedWithoutHero?: MayProceed<W>;
  /** Allows several active runs for one hero. Default false: `start` then throws an AlreadyActiveError. */
  readonly allowMultiple?: boolean;
  /** Called for every exception in a step of the class, even if the step is reattempted. */
  readonly onError?: ErrorReporter;
  /** Called as the last step of a run that fails, and recorded like a step; not called for a run that is canceled. */
  readonly onFailure?: (info: FailureInfo<InputTo<W>>) => unknown;
  /** Exists only for the compiler, to carry the type `W`; never set. */
  readonly __of?: (w: W) => void;
}

type InputTo<W> = W extends { readonly input: infer Input } ? Input : any;

/** The type of `mayProceedWithoutHero`: `true` compiles only if the type of the class's hero allows null. */
type MayProceed<W> = W extends { readonly hero: infer Hero }
  ? null extends Hero
    ? boolean
    : false | ExpectsWorkflowOf<Hero | null>
  : boolean;

/** No value has this type; it makes the compiler's error name the type that the class should extend. */
interface ExpectsWorkflowOf<Hero> {
  readonly [expected]: Hero;
}
declare const expected: unique symbol;

/** Options of `this.step` and `this.task` in the static block of a class. */
export interface StepDeclarationOptions<W> extends ExceptionOptions {
  /** The delay after the previous step, or after the start of the run. Default 0. */
  readonly wait?: Duration;
  /** Skips the step if this is true when the step is about to run. */
  readonly skipIf?: Condition<W>;
  /** Runs the step only if this is true when the step is about to run; otherwise the step is skipped. */
  readonly if?: Condition<W>;
  /** The name of the step of the chain before which this step is inserted; it may be a step of a parent class. */
  readonly beforeStep?: string;
  /** The name of the step of the chain after which this step is inserted; it may be a step of a parent class. */
  readonly afterStep?: string;
  /** The steps and tasks that it depends on, instead of the previous step. null: it depends on none and starts at once. */
  readonly dependsOn?: string | readonly string[] | null;
  /** The steps and tasks that it depends on in addition to the previous step. */
  readonly alsoDependsOn?: string | readonly string[];
  /** The time limit of each attempt. Default: none. */
  readonly timeout?: Duration;
  /**
   * What happens when the worker dies during the step. `"rerun"` (default) runs the step again. `"pause"` runs it at most
   * once and pauses the run until an operator calls `resume()`, `skip()` or `resume({ output })`.
   */
  readonly onCrash?: "rerun" | "pause";
  /** The limit in which each attempt needs a slot, made by `limit(…)`. The step holds it while its body runs. */
  readonly limit?: LimitDefinition;
  /** How much of the rate of the limit an attempt takes. Default: 1. */
  readonly units?: number;
  /** The queue that the run is in while it waits for this step; for chains only. Default: the queue of the class. */
  readonly queue?: string;
  /** The priority of the run while it waits for this step; for chains only. Default: the priority of the run. */
  readonly priority?: number;
}

/** Options of a step or task that runs a job, on any worker that has the job, instead of a function or method. */
export type JobStepOptions<
  W,
  Job extends JobDefinition | string = JobDefinition | string,
> = StepDeclarationOptions<W> & {
  /** The job: what `job(…)` returned, or its name. */
  readonly job: Job;
} & JobArgsOption<W, ArgsOf<Job>>;

type JobArgsOption<W, Args> = [Args] extends [void]
  ? {
      /** The job takes no arguments. */
      readonly args?: undefined;
    }
  : unknown extends Args
    ? {
        /** The arguments of the job, or a function that makes them. */
        readonly args?: ((w: W) => unknown) | object | string | number | boolean | bigint | null;
      }
    : {
        /** The arguments of the job, or a function that makes them. */
        readonly args: Args | ((w: W) => Awaitable<Args>);
      };

/** Options of `this.resumableStep` in the static block of a class. */
export interface ResumableStepOptions<W> extends StepDeclarationOptions<W> {
  /**
   * The time after which an execution is interrupted at its next checkpoint; another execution then continues from the
   * cursor. Default: no limit.
   */
  readonly maxRuntime?: Duration;
  /**
   * The number of items after which an execution is interrupted; another execution then continues from the cursor. Default:
   * no limit.
   */
  readonly maxIterations?: number;
  /**
   * "awaited" (default): the next item starts when the cursor is durable, so a crash repeats at most the item in flight.
   * "relaxed": the next item starts at once, and a crash may repeat a few items.
   */
  readonly checkpoint?: "awaited" | "relaxed";
}

/** The options of a step of any kind, as they are stored with its declaration. */
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
  startBy: parseStartBy,
  version: (value) => checkName("version", value),
  tags: (value, what) => {
    if (!Array.isArray(value)) throw new InvalidInputError(`The ${what} must be a list.`);
    return checkTags(value);
  },
  aliases: (value, what) => checkAliases(what, value),
  limits: (value, what) => checkLimits(`the ${what}`, value),
  fairBy: (value, what) => checkKey(`The ${what}`, value),
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
  // `dependsOn: null` means that the step has no predecessors, so null is allowed here, but not in `alsoDependsOn`.
  dependsOn: (value, what) => value === null || checkNames(value, what),
  alsoDependsOn: checkNames,
  job: (value, what) => {
    if (typeof value === "string") return checkName("job", value);
    if (isJob(value)) return value;
    throw new InvalidInputError(`The ${what} must be a job made by job(…), or the name of one.`);
  },
  args: () => {},
  timeout: parseDuration,
  onCrash: (value, what) => checkActions(value, what, ["rerun", "pause"]),
  queue: (value) => checkName("queue", value),
  priority: checkPriority,
  limit: (value, what) => checkStepLimit(`the ${what}`, value, undefined),
  units: (value, what) => checkUnits(`the ${what}`, value),
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
    if (typeof name !== "string") throw new InvalidInputError(`The ${what} must be names of steps and tasks.`);
    checkName("step", name);
  }
}
