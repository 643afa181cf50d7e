/** Limits: how many runs of one key may be executed at a time. */

import { InvalidInputError } from "../core/errors/errors.js";
import { checkOptions } from "../core/naming/check-options.js";
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

/** Options of `limit(name, options)`. */
export interface LimitOptions<Input = any> {
  /** Each key has slots of its own. Default: all runs share the slots. */
  readonly key?: LimitKey<Input>;
  /** How many runs of one key may hold a slot at a time. */
  readonly concurrency: number;
}

const limitOptions = new Set(["key", "concurrency"] satisfies (keyof LimitOptions)[]);

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
  /** How many runs of one key may hold a slot at a time. */
  readonly concurrency: number;
}

/**
 * Defines a limit. Workflows that name it share its slots, in all processes. A run holds its slot while a worker executes it;
 * while it sleeps, waits or is paused, it holds none. Throws an InvalidInputError if the name or an option is invalid.
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
  const { key = null, concurrency } = options;
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
    throw new InvalidInputError(
      `The concurrency of limit "${name}" must be a whole number of at least 1, not ${String(concurrency)}.`,
    );
  }
  return Object.freeze({
    [limitBrand]: true as const,
    name,
    key: key === null ? null : checkKey(`The key of limit "${name}"`, key),
    concurrency,
  });
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
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
