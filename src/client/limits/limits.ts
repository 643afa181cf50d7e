/** What a client can ask about limits: `pawl.limits`. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { laneOf } from "../../core/limits/lane.js";
import type { LimitOverride } from "../../core/limits/settings.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { checkName } from "../../core/naming/names.js";
import { checkConcurrency, checkRate } from "../../define/limit.js";
import type { StoredLimit } from "../../store/contract/limits.js";
import type { Store } from "../../store/contract/store.js";
import { auditField } from "../command/command-options.js";
import { parseInstant } from "../start/new-run.js";
import {
  type LaneInfo,
  type LimitDetails,
  type LimitInfo,
  type OverrideOptions,
  toHolder,
  toInfo,
} from "./limit-info.js";

const overrideOptions = new Set(["concurrency", "rate", "until", "reason", "by"] satisfies (keyof OverrideOptions)[]);

const maxLanes = 1_000;
const maxHolders = 20;
/** Looking for waiting runs reads at most this many classes. */
const maxClasses = 10_000;
const classesPerPage = 1_000;
const maxWaiting = 1_000;

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
    return (await this.#store.limits.list()).map(toInfo);
  }

  /**
   * Reads a limit and its lanes: which runs hold slots, and how many wait. Returns null if no worker has registered the limit.
   *
   * @example
   * ```ts
   * const perTenant = await pawl.limits.get("per_tenant");
   * console.log(perTenant?.lanes.map(({ key, inUse, waiting }) => `${key}: ${inUse} held, ${waiting} waiting`));
   * ```
   */
  async get(name: string): Promise<LimitDetails | null> {
    if (typeof name !== "string") throw new InvalidInputError("limits.get needs the name of a limit.");
    const { limits } = this.#store;
    const limit = (await limits.list()).find((candidate) => candidate.name === name);
    if (limit === undefined) return null;
    const records = new Map(
      (await limits.lanes(name, { after: null, limit: maxLanes })).map((lane) => [lane.id, lane]),
    );
    const waiting = await this.#countWaiting(name);
    const laneIds = [...new Set([...records.keys(), ...waiting.keys()])].sort().slice(0, maxLanes);
    const lanes: LaneInfo[] = [];
    for (const id of laneIds) {
      const { inUse, waitingSteps, opensAt } = records.get(id) ?? unusedLane;
      const slots = inUse === 0 ? [] : await limits.slots({ lane: id }, maxHolders + waitingSteps);
      const holders = slots.filter(({ isWaiting }) => !isWaiting).slice(0, maxHolders);
      lanes.push({
        key: laneOf(id).key,
        inUse,
        holders: holders.map(toHolder),
        waiting: Math.min((waiting.get(id) ?? 0) + waitingSteps, maxWaiting),
        nextAt: opensAt === null ? null : new Date(opensAt),
      });
    }
    return { ...toInfo(limit), lanes };
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
    const limit = (await limits.list()).find((candidate) => candidate.name === name);
    return toInfo(limit as StoredLimit);
  }

  async #countWaiting(name: string): Promise<ReadonlyMap<string, number>> {
    const { limits } = this.#store;
    const counts = new Map<string, number>();
    let afterId: string | null = null;
    for (let read = 0; read < maxClasses; read += classesPerPage) {
      const page = await limits.classes({ afterId }, classesPerPage);
      const concerned = page.filter(({ lanes }) => lanes.some((lane) => laneOf(lane).limit === name));
      const waiting =
        concerned.length === 0
          ? new Map<string, number>()
          : await limits.waiting(
              concerned.map(({ id }) => id),
              maxWaiting,
            );
      for (const { id, lanes } of concerned) {
        for (const lane of lanes)
          if (laneOf(lane).limit === name) counts.set(lane, (counts.get(lane) ?? 0) + (waiting.get(id) ?? 0));
      }
      afterId = page.at(-1)?.id ?? null;
      if (page.length < classesPerPage) break;
    }
    return counts;
  }
}

const unusedLane = { inUse: 0, waitingSteps: 0, opensAt: null };

function instantOf(until: Date | number | Duration, now: number): number {
  if (until instanceof Date || typeof until === "number") return parseInstant("until", until);
  return now + parseDuration(until, "until");
}
