/** What a client can ask about limits: `pawl.limits`. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { laneOf } from "../../core/limits/lane.js";
import type { SlotRecord, StoredLimit } from "../../store/contract/limits.js";
import type { Store } from "../../store/contract/store.js";

/** A limit, as `pawl.limits.list()` returns it. */
export interface LimitInfo {
  /** The name. */
  readonly name: string;
  /** How many runs of one key may hold a slot at a time; null: no limit. */
  readonly concurrency: number | null;
  /** When a worker registered it for the first time. */
  readonly createdAt: Date;
}

/** A run that holds a slot. */
export interface SlotHolder {
  /** The id of the run. */
  readonly runId: string;
  /** Since when it holds the slot. */
  readonly since: Date;
}

/** The part of a limit that belongs to one key. */
export interface LaneInfo {
  /** The key; "" for a limit without one, and for runs that have none. A very long key is a hash. */
  readonly key: string;
  /** How many slots are held. */
  readonly inUse: number;
  /** The runs that hold them, at most 20. */
  readonly holders: readonly SlotHolder[];
  /** How many runs wait that need a slot of this key, counted up to 1,000. */
  readonly waiting: number;
}

/** A limit with its lanes, as `pawl.limits.get(name)` returns it. */
export interface LimitDetails extends LimitInfo {
  /** The keys with slots in use or with waiting runs, at most 1,000, ordered by key. */
  readonly lanes: readonly LaneInfo[];
}

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
    const inUse = new Map(
      (await limits.lanes(name, { after: null, limit: maxLanes })).map((lane) => [lane.id, lane.inUse]),
    );
    const waiting = await this.#countWaiting(name);
    const laneIds = [...new Set([...inUse.keys(), ...waiting.keys()])].sort().slice(0, maxLanes);
    const lanes: LaneInfo[] = [];
    for (const id of laneIds) {
      const holders = inUse.has(id) ? await limits.slots({ lane: id }, maxHolders) : [];
      lanes.push({
        key: laneOf(id).key,
        inUse: inUse.get(id) ?? 0,
        holders: holders.map(toHolder),
        waiting: Math.min(waiting.get(id) ?? 0, maxWaiting),
      });
    }
    return { ...toInfo(limit), lanes };
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

const toInfo = ({ name, concurrency, createdAt }: StoredLimit): LimitInfo => ({
  name,
  concurrency,
  createdAt: new Date(createdAt),
});

const toHolder = ({ runId, at }: SlotRecord): SlotHolder => ({ runId, since: new Date(at) });
