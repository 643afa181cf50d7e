/**
 * Against dead entries. A claimed task leaves its entry in the index until vacuum may remove it, and while somebody holds
 * an old snapshot (a dump, a long report) it may not. Every claim then walks over all that was ever claimed: 45 ms after
 * 200,000 tasks, and growing. So when a claim is slow and the table full of dead rows, the next ones look only above a lower bound and at the
 * priorities that were seen; what that misses (another priority, a start dated back) a full claim finds now and then.
 * While claims are fast, which is nearly always, none of this happens.
 */
import type { Route } from "../../contract/store.js";

export interface ClaimBounds {
  readonly minDueAt: number;
  readonly priorities: readonly number[];
}

/** What a full claim has shown. */
export interface FullScan {
  readonly tookMs: number;
  /** No task that is left is due earlier, as far as this claim could see. */
  readonly oldestDueAt: number;
  readonly priorities: readonly number[];
  /** Of the table, by the server's statistics. */
  readonly deadRows: number;
}

interface RouteSetState {
  bounds: ClaimBounds | null;
  nextFullScanAt: number;
  readonly priorities: Set<number>;
}

export const slowClaimMs = 25;
const minDeadRows = 20_000;
/** For transactions that took their time to commit. */
const commitSlackMs = 2_000;
/** Full claims take at most a tenth of the time, but come at least so often. */
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

  /** The bounds for the next claim; null: a full one. */
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

/** Workers rotate their routes. */
const routeSetKeyOf = (routes: readonly Route[]) =>
  routes
    .map(({ workflow, version }) => JSON.stringify([workflow, version]))
    .sort()
    .join();
