/**
 * Detects stalled code: the run has no running step and waits for nothing durable, because its code awaits a promise that
 * does not come from `ctx`, or a schema that never resolves. The worker owns such a run until the worker stops, so users
 * notice it only through the warning.
 */

import type { Logger } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";

/** A turn, as the detector sees it. */
interface WatchedTurn {
  readonly runId: string;
  readonly run: { readonly workflow: string };
  readonly state: { readonly seq: number };
  readonly isStalled: boolean;
}

const pollIntervalMs = 60_000;

export class StalledCodeDetector {
  readonly #log: Logger;
  readonly #turns: () => Iterable<WatchedTurn>;
  /** By turn that was stalled at the last check: the length of its log at that check. */
  #stalledAtLastCheck = new Map<WatchedTurn, number>();
  readonly #warnedAbout = new WeakSet<WatchedTurn>();
  readonly #runtime: Runtime;
  #timer: Timer | null = null;

  constructor(log: Logger, turns: () => Iterable<WatchedTurn>, runtime: Runtime) {
    this.#log = log;
    this.#turns = turns;
    this.#runtime = runtime;
  }

  start(): void {
    this.#timer = this.#runtime.setInterval(() => this.check(), pollIntervalMs).unref();
  }

  stop(): void {
    this.#runtime.clearInterval(this.#timer);
  }

  check(): void {
    const stalledNow = new Map<WatchedTurn, number>();
    for (const turn of this.#turns()) {
      if (!turn.isStalled) continue;
      if (this.#stalledAtLastCheck.get(turn) === turn.state.seq && !this.#warnedAbout.has(turn)) this.#warn(turn);
      stalledNow.set(turn, turn.state.seq);
    }
    this.#stalledAtLastCheck = stalledNow;
  }

  #warn(turn: WatchedTurn): void {
    this.#warnedAbout.add(turn);
    this.#log.warn(
      `Run ${turn.runId} (${turn.run.workflow}) has recorded nothing for a minute, and none of its steps is running: its code awaits something outside ctx, or a schema that does not answer. This worker keeps the run until that promise settles; you can cancel the run.`,
    );
  }
}
