/** Limits: how many runs or steps of one key may be executed at a time, and how many may begin in a time. */

import { InvalidInputError } from "../core/errors/errors.js";
import type { OnFull } from "../core/limits/full-lane.js";
import type { Rate } from "../core/limits/rate.js";
import { checkOptions } from "../core/naming/check-options.js";
import { type Duration, parseDuration } from "../core/naming/duration.js";
import { checkName } from "../core/naming/names.js";

/** What the key of a limit is computed from. */
export interface LimitedRun<Input = any> {
  /** The input of the run, as it was given to `start`. */
  readonly input: Input;
  /** The hero of the run; null if it has none. */
  readonly hero: {
    /** The type of the hero; null if it has none. */
    readonly type: string | null;
    /** The id of the hero. */
    readonly id: string;
  } | null;
  /** The tags of the run. */
  readonly tags: readonly string[];
}

/**
 * The key of a run: a path such as `"input.tenant"`, `"hero.id"` or `"tags.0"`, or a function. What is undefined or null is
 * the empty key.
 */
export type LimitKey<Input = any> = string | ((run: LimitedRun<Input>) => unknown);

/** How many runs, or units of steps, may begin in a time. */
export interface RateOptions {
  /** How many may begin in the time. */
  readonly limit: number;
  /** The time, such as `"1m"`. */
  readonly per: Duration;
  /**
   * How many may begin at once, in addition to the first, after a time in which fewer began. Default: 0, an even pace: with
   * 60 per minute, one begins each second.
   */
  readonly burst?: number;
}

/** Options of `limit(name, options)`: a concurrency, a rate, or both. */
export interface LimitOptions<Input = any> {
  /** Each key has slots and a pace of its own. Default: all runs share them. */
  readonly key?: LimitKey<Input>;
  /** How many runs or steps of one key may hold a slot at a time. Default: any number. */
  readonly concurrency?: number;
  /** How many runs or steps of one key may begin in a time. A run begins again each time it goes on after a wait. Default: any number. */
  readonly rate?: RateOptions;
  /**
   * While which time a run holds its slot: `"executing"` (default), while a worker executes it, so it holds none while it
   * sleeps, waits or is paused; or `"open"`, from its first execution to its end. Steps hold a slot while their body runs.
   */
  readonly while?: "executing" | "open";
  /**
   * What becomes of a run that has not begun and finds no free slot: `"wait"` (default); `"skip"`: it is canceled with the code
   * "LIMIT_SKIPPED"; `"fail"`: it fails with a LimitFullError; or `"cancelOldest"`: it waits, and the oldest run with the same
   * key is canceled with the code "LIMIT_SUPERSEDED". A worker judges it when the run is due.
   */
  readonly onFull?: OnFull;
  /** How many runs of one key may wait for a slot before `onFull` applies. Default: 0. */
  readonly backlog?: number;
}

const limitOptions = new Set([
  "key",
  "concurrency",
  "rate",
  "while",
  "onFull",
  "backlog",
] satisfies (keyof LimitOptions)[]);
const rateOptions = new Set(["limit", "per", "burst"] satisfies (keyof RateOptions)[]);

/** Marks limits. The symbol is global, so limits made by another copy of the package are recognised. */
const limitBrand: unique symbol = Symbol.for("pawl.limit");

/** A limit, as `limit(…)` returns it. */
export interface LimitDefinition {
  /** Marks a limit. */
  readonly [limitBrand]: true;
  /** The name, which all processes that have the limit share. */
  readonly name: string;
  /** The key; null: all runs share the slots. */
  readonly key: LimitKey | null;
  /** How many runs of one key may hold a slot at a time; null: any number. */
  readonly concurrency: number | null;
  /** How many may begin in a time; null: any number. */
  readonly rate: Rate | null;
  /** While which time a run holds its slot. */
  readonly while: "executing" | "open";
  /** What becomes of a run that has not begun and finds no free slot. */
  readonly onFull: OnFull;
  /** How many runs of one key may wait for a slot; null: any number, because all wait. */
  readonly backlog: number | null;
}

/**
 * Defines a limit. Workflows and steps that name it share its slots and its pace, in all processes. Throws an InvalidInputError
 * if the name or an option is invalid.
 *
 * @example
 * ```ts
 * const perTenant = limit("per_tenant", { key: "input.tenant", concurrency: 2 });
 * export const sync = workflow("sync", { limits: [perTenant] }, async (ctx, input: { tenant: string }) => {
 *   await ctx.step("copy", () => console.log(`copies the data of ${input.tenant}`));
 * });
 * ```
 */
export function limit<Input = any>(name: string, options: LimitOptions<Input>): LimitDefinition {
  checkName("limit", name);
  checkOptions(`Limit "${name}"`, options, limitOptions);
  const { key = null, while: heldWhile = "executing" } = options;
  const what = `limit "${name}"`;
  const concurrency = checkConcurrency(what, options.concurrency ?? null);
  const rate = checkRate(what, options.rate ?? null);
  if (concurrency === null && rate === null)
    throw new InvalidInputError(`Limit "${name}" limits nothing: it needs a concurrency, a rate, or both.`);
  if (heldWhile !== "executing" && heldWhile !== "open")
    throw new InvalidInputError(
      `while of limit "${name}" must be "executing" or "open", not ${JSON.stringify(heldWhile)}.`,
    );
  return Object.freeze({
    [limitBrand]: true as const,
    name,
    key: key === null ? null : checkKey(`The key of limit "${name}"`, key),
    concurrency,
    rate,
    while: heldWhile,
    ...checkOnFull(what, options, concurrency),
  });
}

const onFullChoices = new Set<OnFull>(["wait", "skip", "fail", "cancelOldest"]);
/** The runs that wait are counted whenever a run comes into the line. */
const maxBacklog = 10_000;

function checkOnFull(
  what: string,
  { onFull = "wait", backlog }: Pick<LimitOptions, "onFull" | "backlog">,
  concurrency: number | null,
): Pick<LimitDefinition, "onFull" | "backlog"> {
  if (!onFullChoices.has(onFull))
    throw new InvalidInputError(
      `onFull of ${what} must be "wait", "skip", "fail" or "cancelOldest", not ${JSON.stringify(onFull) ?? String(onFull)}.`,
    );
  if (onFull === "wait") {
    if (backlog === undefined) return { onFull, backlog: null };
    throw new InvalidInputError(
      `The backlog of ${what} needs onFull: "skip", "fail" or "cancelOldest": with "wait" any number of runs wait.`,
    );
  }
  if (onFull === "cancelOldest" && concurrency === null)
    throw new InvalidInputError(`onFull: "cancelOldest" of ${what} needs a concurrency: a rate has no runs to cancel.`);
  const isValid = backlog === undefined || (Number.isSafeInteger(backlog) && backlog >= 0 && backlog <= maxBacklog);
  if (!isValid)
    throw new InvalidInputError(
      `The backlog of ${what} must be a whole number from 0 to ${maxBacklog.toLocaleString("en")}, not ${String(backlog)}.`,
    );
  return { onFull, backlog: backlog ?? 0 };
}

/** @param what for the message: `limit "per_tenant"` */
export function checkConcurrency(what: string, concurrency: number | null): number | null {
  if (concurrency === null || (Number.isSafeInteger(concurrency) && concurrency >= 1)) return concurrency;
  throw new InvalidInputError(
    `The concurrency of ${what} must be a whole number of at least 1, not ${String(concurrency)}.`,
  );
}

/** A pace is stored in microseconds as a number, which must stay exact. */
const maxRatePart = 1_000_000_000;

/** @param what for the message: `limit "per_tenant"` */
export function checkRate(what: string, rate: RateOptions | null): Rate | null {
  if (rate === null) return null;
  checkOptions(`The rate of ${what}`, rate, rateOptions);
  const { limit: count, per, burst = 0 } = rate;
  const perMs = parseDuration(per, `per in the rate of ${what}`);
  const isWhole = (value: number, least: number) =>
    Number.isSafeInteger(value) && value >= least && value <= maxRatePart;
  if (!isWhole(count, 1))
    throw new InvalidInputError(
      `limit in the rate of ${what} must be a whole number from 1 to 1,000,000,000, not ${String(count)}.`,
    );
  if (!isWhole(burst, 0))
    throw new InvalidInputError(
      `burst in the rate of ${what} must be a whole number from 0 to 1,000,000,000, not ${String(burst)}.`,
    );
  if (perMs < 1) throw new InvalidInputError(`per in the rate of ${what} must be at least a millisecond.`);
  return { limit: count, perMs, burst };
}

/** The limit of a step, and how much of its rate each attempt takes. */
export interface StepLimit {
  readonly limit: LimitDefinition;
  readonly units: number;
}

/** @param what the step, for the message: `Step "charge"` */
export function checkStepLimit(what: string, limit: unknown, units: unknown): StepLimit | null {
  if (limit === undefined) {
    if (units === undefined) return null;
    throw new InvalidInputError(`${what} has units, but no limit that they count for.`);
  }
  if (!isLimit(limit)) throw new InvalidInputError(`The limit of ${what} must be made by limit(…).`);
  if (limit.while === "open")
    throw new InvalidInputError(
      `${what} cannot have the limit "${limit.name}", which is held until the end of a run; use it for a workflow.`,
    );
  if (limit.onFull !== "wait")
    throw new InvalidInputError(
      `${what} cannot have the limit "${limit.name}", whose onFull is "${limit.onFull}": a step always waits for its slot.`,
    );
  return { limit, units: checkUnits(what, units ?? 1) };
}

/** @param what the step, for the message: `Step "charge"` */
export function checkUnits(what: string, units: unknown): number {
  if (typeof units === "number" && Number.isSafeInteger(units) && units >= 0 && units <= maxRatePart) return units;
  throw new InvalidInputError(
    `The units of ${what} must be a whole number from 0 to 1,000,000,000, not ${String(units)}.`,
  );
}

const isLimit = (value: unknown): value is LimitDefinition =>
  typeof value === "object" && value !== null && (value as Partial<LimitDefinition>)[limitBrand] === true;

/** @param owner the workflow, for the message: `Workflow "sync"` */
export function checkLimits(owner: string, limits: unknown): readonly LimitDefinition[] {
  if (limits === undefined) return [];
  if (!Array.isArray(limits) || !limits.every(isLimit))
    throw new InvalidInputError(`The limits of ${owner} must be a list of limits made by limit(…).`);
  const names = new Set<string>();
  for (const { name } of limits) {
    if (names.has(name)) throw new InvalidInputError(`The limits of ${owner} contain "${name}" twice.`);
    names.add(name);
  }
  return Object.freeze([...limits]);
}

const roots = ["input", "hero", "tags"];

/** @param what for the message: `The key of limit "per_tenant"` */
export function checkKey(what: string, key: unknown): LimitKey {
  if (typeof key === "function") return key as LimitKey;
  if (typeof key === "string" && roots.includes(key.split(".")[0] as string)) return key;
  throw new InvalidInputError(
    `${what} must be a function, or a path that begins with input, hero or tags, such as "input.tenant", not ${JSON.stringify(key) ?? String(key)}.`,
  );
}

/** @throws what a function throws */
export function keyOfRun(key: LimitKey | null, run: LimitedRun): string {
  if (key === null) return "";
  return toText(typeof key === "function" ? key(run) : valueAt(run, key.split(".")));
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (current, name) =>
      typeof current === "object" && current !== null && Object.hasOwn(current, name)
        ? (current as Readonly<Record<string, unknown>>)[name]
        : undefined,
    value,
  );
}

function toText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? (JSON.stringify(value) ?? "") : String(value);
}
