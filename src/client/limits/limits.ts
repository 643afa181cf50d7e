/** What a client can ask about limits: `pawl.limits`. */

import { InvalidInputError } from "../../core/errors/errors.js";
import type { LimitOverride } from "../../core/limits/settings.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { checkName } from "../../core/naming/names.js";
import { checkConcurrency, checkRate } from "../../define/limit.js";
import type { StoredLimit } from "../../store/contract/limits.js";
import type { Store } from "../../store/contract/store.js";
import { auditField } from "../command/command-options.js";
import { parseInstant } from "../start/new-run.js";
import { checkLaneQuestion, readLanePage } from "./lanes.js";
import {
  type LimitDetails,
  type LimitInfo,
  type LimitLoad,
  type LimitPageOptions,
  type OverrideOptions,
  toInfo,
} from "./limit-info.js";
import { readLoads } from "./loads.js";

const overrideOptions = new Set(["concurrency", "rate", "until", "reason", "by"] satisfies (keyof OverrideOptions)[]);

/** Reads limits. `pawl.limits` is one. */
export class Limits {
  readonly #store: Store;

  /** @internal */
  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Lists the limits that workers have registered, by name.
   *
   * @example
   * ```ts
   * for (const { name, concurrency } of await pawl.limits.list()) console.log(name, concurrency);
   * ```
   */
  async list(): Promise<readonly LimitInfo[]> {
    return this.#describe(await this.#store.limits.list());
  }

  /**
   * Reads a limit and a page of its lanes: which runs hold slots, and how many wait. Returns null if no worker has registered the
   * limit.
   *
   * @example
   * ```ts
   * const perTenant = await pawl.limits.get("per_tenant");
   * console.log(perTenant?.lanes.map(({ key, inUse, waiting }) => `${key}: ${inUse} held, ${waiting} waiting`));
   * ```
   */
  async get(name: string, options: LimitPageOptions = {}): Promise<LimitDetails | null> {
    if (typeof name !== "string") throw new InvalidInputError("limits.get needs the name of a limit.");
    const question = checkLaneQuestion(name, options);
    const info = await this.#find(name);
    return info === null ? null : { ...info, ...(await readLanePage(this.#store, name, question)) };
  }

  /**
   * Puts other values in force in place of those of the code, at once and for all workers, until they are cleared, until they
   * are overridden again, or until an instant. Slots that are held are not taken away. Throws an InvalidInputError if no worker
   * has registered the limit.
   *
   * @example
   * ```ts
   * await pawl.limits.override("openai", { concurrency: 5, until: "2 hours", reason: "their incident", by: "ada" });
   * ```
   */
  async override(name: string, options: OverrideOptions): Promise<LimitInfo> {
    const what = `limit "${checkName("limit", name)}"`;
    checkOptions("limits.override()", options, overrideOptions);
    const { concurrency, rate, until } = options;
    const { audit } = auditField(options);
    if (concurrency === undefined && rate === undefined)
      throw new InvalidInputError(`The override of ${what} changes nothing: it needs a concurrency, a rate, or both.`);
    const now = await this.#store.now();
    const override: LimitOverride = {
      ...(concurrency === undefined ? {} : { concurrency: checkConcurrency(what, concurrency) }),
      ...(rate === undefined ? {} : { rate: checkRate(what, rate) }),
      until: until === undefined ? null : instantOf(until, now),
      reason: audit?.reason ?? null,
      by: audit?.by ?? null,
      at: now,
    };
    return this.#setOverride(name, override);
  }

  /**
   * Ends an override: the values of the code are in force again. Throws an InvalidInputError if no worker has registered the
   * limit.
   *
   * @example
   * ```ts
   * await pawl.limits.clearOverride("openai");
   * ```
   */
  clearOverride(name: string): Promise<LimitInfo> {
    return this.#setOverride(checkName("limit", name), null);
  }

  async #setOverride(name: string, override: LimitOverride | null): Promise<LimitInfo> {
    const { limits } = this.#store;
    if (!(await limits.override(name, override)))
      throw new InvalidInputError(
        `There is no limit "${name}": a worker registers it when it starts, or when its first step needs it.`,
      );
    // Lanes that were full may have room now.
    await limits.sweep();
    return (await this.#find(name)) as LimitInfo;
  }

  async #find(name: string): Promise<LimitInfo | null> {
    const [info = null] = await this.#describe(
      (await this.#store.limits.list()).filter((candidate) => candidate.name === name),
    );
    return info;
  }

  async #describe(stored: readonly StoredLimit[]): Promise<readonly LimitInfo[]> {
    if (stored.length === 0) return [];
    const [now, loads] = await Promise.all([
      this.#store.now(),
      readLoads(
        this.#store,
        stored.map(({ name }) => name),
      ),
    ]);
    return stored.map((limit) => toInfo(limit, loads.get(limit.name) as LimitLoad, now));
  }
}

function instantOf(until: Date | number | Duration, now: number): number {
  if (until instanceof Date || typeof until === "number") return parseInstant("until", until);
  return now + parseDuration(until, "until");
}
