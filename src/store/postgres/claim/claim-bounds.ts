/**
 * Against dead entries. A claimed task leaves its entry in the index until vacuum may remove it, and while somebody holds
 * an old snapshot (a dump, a long report) it may not. Every claim then walks over all that was ever claimed: 45 ms after
 * 200,000 tasks, and growing. So when a claim is slow and the table full of dead rows, the next ones look only above a lower bound and at the
 * priorities that were seen; what that misses (another priority, a start dated back) a full claim finds now and then.
 * While claims are fast, which is nearly always, none of this happens.
 */
import type { Route } from "../../contract/store.js";

export interface Bounds {
  readonly low: number;
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

interface State {
  bounds: Bounds | null;
  fullScanAt: number;
  readonly priorities: Set<number>;
}

export const slowMs = 25;
const manyDeadRows = 20_000;
/** For transactions that took their time to commit. */
const slackMs = 2_000;
/** Full claims take at most a tenth of the time, but come at least so often. */
const longestPauseMs = 2_000;
const mostPriorities = 16;
const mostStates = 50;

export class ScanBounds {
  readonly #states = new Map<string, State>();
  readonly #now: () => number;

  /** @param now a monotonic clock in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The bounds for the next claim; null: a full one. */
  of(routes: readonly Route[]): Bounds | null {
    const state = this.#states.get(keyOf(routes));
    return state === undefined || this.#now() >= state.fullScanAt ? null : state.bounds;
  }

  msToFullScan(routes: readonly Route[]): number {
    const state = this.#states.get(keyOf(routes));
    return state === undefined ? 0 : Math.max(0, Math.ceil(state.fullScanAt - this.#now()));
  }

  learn(routes: readonly Route[], { tookMs, oldestDueAt, priorities, deadRows }: FullScan): void {
    const state = this.#state(keyOf(routes));
    for (const priority of priorities) if (state.priorities.size < mostPriorities) state.priorities.add(priority);
    const known = state.priorities.size > 0 && state.priorities.size < mostPriorities;
    state.fullScanAt = this.#now() + Math.min(10 * tookMs, longestPauseMs);
    const hampered = tookMs >= slowMs && deadRows >= manyDeadRows;
    state.bounds = hampered && known ? { low: oldestDueAt - slackMs, priorities: [...state.priorities] } : null;
  }

  #state(key: string): State {
    let state = this.#states.get(key);
    if (state === undefined) {
      if (this.#states.size >= mostStates) this.#states.clear();
      state = { bounds: null, fullScanAt: 0, priorities: new Set() };
      this.#states.set(key, state);
    }
    return state;
  }
}

/** Workers rotate their routes. */
const keyOf = (routes: readonly Route[]) =>
  routes
    .map(({ workflow, version }) => JSON.stringify([workflow, version]))
    .sort()
    .join();
