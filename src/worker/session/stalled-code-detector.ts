/**
 * Notices code that has come to a standstill: its run has no step running and waits for nothing durable, because the code
 * awaits something of its own, or a schema that does not answer. Such a run is owned for as long as its worker lives, so
 * that only a warning can tell it from one that is about to go on.
 */

import type { Logger } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";

/** A turn whose code may have come to a standstill. */
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
  /** Those that were silent at the last look, and how long their logs were then. */
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
      `Run ${turn.runId} (${turn.run.workflow}) has recorded nothing for a minute, and no step of it is running: its code awaits something that is not under ctx, or a schema that does not answer. It is held by this worker until that settles; it can be canceled.`,
    );
  }
}
