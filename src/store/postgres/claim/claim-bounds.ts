/**
 * Keeps claims fast when the index is full of dead entries. A claimed task leaves its index entry behind until vacuum
 * removes it, and vacuum cannot do so while another transaction holds an old snapshot (a dump, a long report). Every
 * claim then scans the entries of all tasks that were claimed since: 45 ms after 200,000 tasks, and growing. So when a
 * claim is slow and the table has many dead rows, the next claims search only above a minimum due time and only the
 * priorities of earlier claimed tasks. From time to time a full claim finds the tasks that these bounds exclude
 * (another priority, an earlier due time). While claims are fast, which is nearly always, they are not bounded.
 */
import type { Route } from "../../contract/store.js";

export interface ClaimBounds {
  readonly minDueAt: number;
  readonly priorities: readonly number[];
}

/** What a full claim has found out. */
export interface FullScan {
  readonly tookMs: number;
  /** As far as this claim could see, no remaining task is due earlier. */
  readonly oldestDueAt: number;
  readonly priorities: readonly number[];
  /** The number of dead rows of the table, from the server's statistics. */
  readonly deadRows: number;
}

/** The bounds of claims for one set of routes, and the priorities that its full claims have found. */
interface RouteSetState {
  bounds: ClaimBounds | null;
  nextFullScanAt: number;
  readonly priorities: Set<number>;
}

export const slowClaimMs = 25;
const minDeadRows = 20_000;
/** Subtracted from the minimum due time, because a task becomes visible only when its transaction has committed. */
const commitSlackMs = 2_000;
/** The next full claim follows after ten times the duration of the last, but after this interval at the latest. */
const maxFullScanIntervalMs = 2_000;
const maxPriorities = 16;
const maxStates = 50;

export class ClaimBoundsTracker {
  readonly #states = new Map<string, RouteSetState>();
  readonly #now: () => number;

  /** @param now a monotonic clock in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The bounds for the next claim; null for a full claim. */
  boundsFor(routes: readonly Route[]): ClaimBounds | null {
    const state = this.#states.get(routeSetKeyOf(routes));
    return state === undefined || this.#now() >= state.nextFullScanAt ? null : state.bounds;
  }

  msToFullScan(routes: readonly Route[]): number {
    const state = this.#states.get(routeSetKeyOf(routes));
    return state === undefined ? 0 : Math.max(0, Math.ceil(state.nextFullScanAt - this.#now()));
  }

  recordFullScan(routes: readonly Route[], { tookMs, oldestDueAt, priorities, deadRows }: FullScan): void {
    const state = this.#getOrCreateState(routeSetKeyOf(routes));
    for (const priority of priorities) if (state.priorities.size < maxPriorities) state.priorities.add(priority);
    const arePrioritiesKnown = state.priorities.size > 0 && state.priorities.size < maxPriorities;
    state.nextFullScanAt = this.#now() + Math.min(10 * tookMs, maxFullScanIntervalMs);
    const isSlowedByDeadRows = tookMs >= slowClaimMs && deadRows >= minDeadRows;
    state.bounds =
      isSlowedByDeadRows && arePrioritiesKnown
        ? { minDueAt: oldestDueAt - commitSlackMs, priorities: [...state.priorities] }
        : null;
  }

  #getOrCreateState(key: string): RouteSetState {
    let state = this.#states.get(key);
    if (state === undefined) {
      if (this.#states.size >= maxStates) this.#states.clear();
      state = { bounds: null, nextFullScanAt: 0, priorities: new Set() };
      this.#states.set(key, state);
    }
    return state;
  }
}

/** The routes are sorted, because workers rotate the order of their routes. */
const routeSetKeyOf = (routes: readonly Route[]) =>
  routes
    .map(({ workflow, version }) => JSON.stringify([workflow, version]))
    .sort()
    .join();
