/** Schedules in code: `schedule(name, options)` says when runs of a workflow start by themselves. */
import { decode } from "../../core/encoding/decode.js";
import { encode } from "../../core/encoding/encode.js";
import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions, checkWholeNumber } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { sha256Hex } from "../../core/naming/ids.js";
import { checkName, checkTags } from "../../core/naming/names.js";
import { minimumGapMs, nextInstants } from "../../core/schedule/instants.js";
import { parseTiming, type ScheduleTimingOptions } from "../../core/schedule/rule.js";
import type { CatchUp, Overlap, ScheduleData } from "../../core/schedule/schedule-data.js";
import type { InputOf } from "../class/class-types.js";
import type { WorkflowClass } from "../class/workflow-instance.js";
import { isDefinition, type WorkflowDefinition } from "../definition.js";
import { checkPriority } from "../function/function.js";
import { checkHero, defaultHeroPolicy, type HeroRef } from "../hero.js";
import { type AnyWorkflow, asDefinition, nameOf } from "../resolve.js";

/** The argument of the function that computes the input of a scheduled run. */
export interface ScheduledOccurrence {
  /** The name of the schedule. */
  readonly schedule: string;
  /** The instant that the run stands for. It may start later. */
  readonly scheduledFor: Date;
  /** How many earlier occurrences, which did not run, it stands for. */
  readonly missed: number;
  /** Whether `trigger()` asked for it. */
  readonly manual: boolean;
  /** Whether it is part of a backfill. */
  readonly backfill: boolean;
}

/** What catches up occurrences that became due while no worker fired the schedule, or while it was paused. */
export interface CatchUpOptions {
  /**
   * `"latest"`: one run, which stands for all of them. `"none"`: none that is more than a minute late. `"all"`: all of them,
   * the oldest first, at most 100.
   */
  readonly mode: "latest" | "none" | "all";
  /** Occurrences that are later than this do not run. Default: without limit; for `"none"`, a minute. */
  readonly within?: Duration;
}

/** The options of a schedule that do not depend on the type of the input. */
export interface ScheduleSettings extends ScheduleTimingOptions {
  /**
   * What happens when an occurrence is due while a run of the schedule is open; a paused run is open. `"skip"`: it does not
   * run. `"bufferOne"`: it waits, and further ones are skipped. `"bufferAll"`: up to 100 wait. `"cancelOther"`: the open run is
   * canceled, and the new one starts when it has ended. `"allowAll"`: both run. Default: `"skip"`.
   */
  readonly overlap?: Overlap;
  /** What runs after downtime and after a pause. Default: `"latest"`. */
  readonly catchUp?: CatchUp["mode"] | CatchUpOptions;
  /**
   * Starts each run up to this much later, to spread load. The delay is a hash of name and instant, the same in every
   * process. It is shorter than the distance of two occurrences.
   */
  readonly jitter?: Duration;
  /** Pauses the schedule after this many failed runs in a row. Default: never. */
  readonly pauseOnFailure?: number;
  /** The schedule ends after this many runs. Default: without limit. */
  readonly maxRuns?: number;
  /** The priority of its runs. Default: that of the workflow. */
  readonly priority?: number;
  /** Tags of its runs, in addition to those of the workflow. */
  readonly tags?: readonly string[];
  /** The hero of its runs. While a run of this hero is active, an occurrence fails to start. */
  readonly hero?: HeroRef;
}

/** The type of the input of a scheduled workflow, which is given by its code or its name. */
export type ScheduledInput<Scheduled> =
  Scheduled extends WorkflowDefinition<infer Input>
    ? Input
    : Scheduled extends WorkflowClass
      ? InputOf<Scheduled>
      : unknown;

/** The same as unknown, except that a union of it with a function gives the parameters of the function their types. */
type AnyValue = NonNullable<unknown> | null | undefined;
type ValueOrFunction<Input> = Input | ((occurrence: ScheduledOccurrence) => Input | Promise<Input>);

/** Any input. It is not `unknown`, which would hide the type of the function's argument. */
type AnyInput = object | string | number | bigint | boolean | null | undefined;

/** The option `input`. It may be left out if the workflow takes none, or is given by its name. */
export type ScheduleInputOption<Input> = unknown extends Input
  ? {
      /** The input of the runs, or a function that computes it from the instant. */
      readonly input?: AnyValue | ((occurrence: ScheduledOccurrence) => unknown);
    }
  : [Input] extends [void]
    ? {
        /** The input of the runs, or a function that computes it from the instant. */
        readonly input?: ValueOrFunction<AnyInput>;
      }
    : {
        /** The input of the runs, or a function that computes it from the instant. */
        readonly input: ValueOrFunction<Input>;
      };

/** Options of `schedule(name, options)`: exactly one of `cron`, `every` and `at` is needed. */
export type ScheduleOptions<Scheduled extends AnyWorkflow | string = AnyWorkflow | string> = ScheduleSettings & {
  /** The workflow, given by its code or its name. */
  readonly workflow: Scheduled;
} & ScheduleInputOption<ScheduledInput<Scheduled>>;

const scheduleBrand: unique symbol = Symbol.for("pawl.schedule");

/** A schedule, as `schedule(…)` returns it. Give it to a worker: `pawl.worker({ schedules: [nightly] })`. */
export interface ScheduleDefinition {
  /** Marks a schedule. The symbol is global, so schedules made by another copy of the package are recognised. */
  readonly [scheduleBrand]: true;
  /** The name of the schedule. */
  readonly name: string;
  /** The name of the workflow that it starts. */
  readonly workflow: string;
  /** The next instants after `from`, without jitter. It depends on nothing else, so it says the same everywhere. */
  next(count: number, from: Date | number): Date[];
  /** @internal What is stored about it. */
  readonly data: ScheduleData;
  /** @internal The function that computes inputs; null if the input is a value. */
  readonly computeInput: ((occurrence: ScheduledOccurrence) => unknown) | null;
  /** @internal Changes whenever anything about it changes. */
  readonly hash: string;
  /** @internal The code of the workflow, to register it; null if the schedule names it. */
  readonly definition: WorkflowDefinition | null;
}

const settingNames = [
  "workflow",
  "input",
  "cron",
  "timeZone",
  "gap",
  "repeat",
  "every",
  "offset",
  "at",
  "startAt",
  "endAt",
  "except",
  "overlap",
  "catchUp",
  "jitter",
  "pauseOnFailure",
  "maxRuns",
  "priority",
  "tags",
  "hero",
] as const satisfies (keyof ScheduleSettings | "workflow" | "input")[];

const scheduleOptionNames: ReadonlySet<string> = new Set(settingNames);

/**
 * Defines when runs of a workflow start by themselves. A worker that is given the schedule fires it; of several workers one
 * does, in one commit with the run. Throws an InvalidInputError if the name or an option is invalid.
 *
 * @example
 * ```ts
 * export const nightly = schedule("nightly_report", {
 *   workflow: report,
 *   input: ({ scheduledFor }) => ({ day: scheduledFor }),
 *   cron: "30 2 * * *",
 *   timeZone: "Europe/Berlin",
 * });
 * pawl.worker({ workflows: [report], schedules: [nightly] });
 * ```
 */
export function schedule<const Scheduled extends AnyWorkflow | string>(
  name: string,
  options: ScheduleOptions<Scheduled>,
): ScheduleDefinition;
export function schedule(name: string, options: ScheduleOptions): ScheduleDefinition {
  checkName("schedule", name);
  const { input } = (options ?? {}) as { readonly input?: unknown };
  const computeInput = typeof input === "function" ? (input as ScheduleDefinition["computeInput"]) : null;
  const data = toScheduleData(name, options);
  const { workflow } = options;
  const code = computeInput === null ? "" : Function.prototype.toString.call(computeInput);
  const definition: Omit<ScheduleDefinition, "next"> = {
    [scheduleBrand]: true,
    name,
    workflow: data.workflow,
    data,
    computeInput,
    hash: sha256Hex(JSON.stringify([data, code])).slice(0, 32),
    definition: typeof workflow === "string" ? null : asDefinition(workflow),
  };
  return Object.freeze({
    ...definition,
    next: (count: number, from: Date | number) => instantsOf(data, count, Number(from)),
  });
}

/** The next instants of a schedule, as dates. */
function instantsOf({ timing }: Pick<ScheduleData, "timing">, count: number, from: number): Date[] {
  if (!Number.isInteger(count) || count < 1 || count > 10_000)
    throw new InvalidInputError(`next(count) takes a whole number from 1 to 10,000, not ${String(count)}.`);
  if (Number.isNaN(from)) throw new InvalidInputError("next(count, from) takes a Date, or milliseconds since 1970.");
  return nextInstants(timing, from, count).map((instant) => new Date(instant));
}

const isSchedule = (value: unknown): value is ScheduleDefinition =>
  typeof value === "object" && value !== null && (value as Partial<ScheduleDefinition>)[scheduleBrand] === true;

const overlaps: ReadonlySet<string> = new Set<Overlap>(["skip", "bufferOne", "bufferAll", "cancelOther", "allowAll"]);
const catchUpModes: ReadonlySet<string> = new Set<CatchUp["mode"]>(["latest", "none", "all"]);
const catchUpOptions = new Set(["mode", "within"] satisfies (keyof CatchUpOptions)[]);

/** Checks the options of a schedule and returns what is stored about it. An input that is a function is not stored. */
export function toScheduleData(name: string, options: ScheduleOptions): ScheduleData {
  const owner = `Schedule "${name}"`;
  checkOptions(owner, options, scheduleOptionNames);
  const { input } = options as { readonly input?: unknown };
  const { workflow, jitter, overlap = "skip", pauseOnFailure, maxRuns, priority, tags, hero } = options;
  const timing = parseTiming(owner, timingOptionsOf(options));
  if (!overlaps.has(overlap))
    throw new InvalidInputError(
      `${owner} has no overlap policy "${String(overlap)}"; there are ${[...overlaps].join(", ")}.`,
    );
  const jitterMs = jitter === undefined ? 0 : parseDuration(jitter, "jitter");
  if (jitterMs > 0 && jitterMs >= minimumGapMs(timing))
    throw new InvalidInputError(
      `${owner}: a jitter of ${jitterMs} ms is not less than the shortest time between two occurrences, ${minimumGapMs(timing)} ms.`,
    );
  if (workflow === undefined)
    throw new InvalidInputError(`${owner} does not say which workflow it starts; give it workflow: report, or a name.`);
  const workflowName = typeof workflow === "string" ? checkName("workflow", workflow) : nameOf(workflow);
  const policy = typeof workflow === "string" ? defaultHeroPolicy : asDefinition(workflow).hero;
  const checkedHero = checkHero(workflowName, policy, hero);
  return {
    workflow: workflowName,
    input: typeof input === "function" ? null : encode(input, { label: `the input of schedule "${name}"` }),
    timing,
    jitterMs,
    overlap,
    catchUp: toCatchUp(owner, options.catchUp ?? "latest"),
    pauseOnFailure: pauseOnFailure === undefined ? null : checkWholeNumber(`${owner}: pauseOnFailure`, pauseOnFailure),
    maxRuns: maxRuns === undefined ? null : checkWholeNumber(`${owner}: maxRuns`, maxRuns),
    ...(priority === undefined ? {} : { priority: checkPriority(priority) }),
    ...(tags === undefined ? {} : { tags: checkTags(tags) }),
    ...(checkedHero === null ? {} : { hero: checkedHero }),
  };
}

const timingNames = [
  "cron",
  "timeZone",
  "gap",
  "repeat",
  "every",
  "offset",
  "at",
  "startAt",
  "endAt",
  "except",
] as const;

function timingOptionsOf(options: ScheduleTimingOptions): ScheduleTimingOptions {
  const given = timingNames.flatMap((key) => (options[key] === undefined ? [] : [[key, options[key]]]));
  return Object.fromEntries(given) as ScheduleTimingOptions;
}

function toCatchUp(owner: string, catchUp: CatchUp["mode"] | CatchUpOptions): CatchUp {
  if (typeof catchUp !== "string") checkOptions(`${owner}: catchUp`, catchUp, catchUpOptions);
  const { mode, within } = typeof catchUp === "string" ? { mode: catchUp, within: undefined } : catchUp;
  if (!catchUpModes.has(mode))
    throw new InvalidInputError(
      `${owner} has no catch-up mode "${String(mode)}"; there are ${[...catchUpModes].join(", ")}.`,
    );
  return { mode, withinMs: within === undefined ? null : parseDuration(within, "within") };
}

/** @throws InvalidInputError for values that are no schedules, and for two schedules with one name */
export function asSchedules(values: readonly unknown[]): readonly ScheduleDefinition[] {
  if (!Array.isArray(values))
    throw new InvalidInputError(
      "`schedules` of a worker must be a list of what schedule(name, options) returns: schedules: [nightly].",
    );
  const byName = new Map<string, ScheduleDefinition>();
  for (const [index, value] of values.entries()) {
    if (!isSchedule(value))
      throw new InvalidInputError(
        `schedules[${index}] is not a schedule${isDefinition(value) ? ` but the workflow "${value.name}"` : ""}; make one with schedule(name, { workflow, cron }). To take the schedules from all exports of a module, use discoverSchedules(module).`,
      );
    const existing = byName.get(value.name);
    if (existing !== undefined && existing !== value)
      throw new InvalidInputError(`Two different schedules are called "${value.name}"; give one another name.`);
    byName.set(value.name, value);
  }
  return [...byName.values()];
}

/**
 * Returns the schedules that a module exports, for `pawl.worker({ schedules })`. Ignores other exports.
 *
 * @example
 * ```ts
 * const schedules = discoverSchedules(await import("./workflows.js"));
 * ```
 */
export function discoverSchedules(module: object): ScheduleDefinition[] {
  return [...new Set(Object.values(module).flat().filter(isSchedule))];
}

/** The stored input as a value; undefined when a function computes it. */
export const plainInputOf = ({ input }: ScheduleData): unknown => (input === null ? undefined : decode(input));
