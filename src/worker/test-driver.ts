/**
 * Drives a worker by hand, for tests: it takes runs only while it is told to, none begins at its birth, and time is the
 * test's. A worker that is not driven takes runs whenever it likes.
 */
import type { Runtime } from "../runtime/runtime.js";
import { yieldToEventLoop } from "../runtime/wait.js";
import { inCleanContext } from "../telemetry/async-context.js";
import type { Claimer } from "./claim/claimer.js";
import type { TurnAtHost } from "./turn/host.js";

/** The runs that the worker has. */
interface DrivenSession {
  readonly size: number;
  readonly turns: ReadonlyMap<string, { poke(): Promise<void> }>;
}

export class TestDriver {
  /** The store's clock, which the test moves; null: the worker is not driven. */
  clock: (() => number) | null = null;
  readonly #claiming: Claimer;
  readonly #runtime: Runtime;
  readonly #session: () => DrivenSession | null;
  #drives = 0;
  #oneStep: { readonly runId: string; ended: boolean } | null = null;

  constructor(claiming: Claimer, runtime: Runtime, session: () => DrivenSession | null) {
    this.#claiming = claiming;
    this.#runtime = runtime;
    this.#session = session;
  }

  get takesRuns(): boolean {
    if (this.clock !== null && this.#drives === 0) return false;
    return this.#oneStep?.ended !== true;
  }

  /** False while a test wants a resumable step to go through at once. */
  get allowsInterruptions(): boolean {
    return this.#oneStep === null;
  }

  stepEnded(turn: TurnAtHost): void {
    if (this.#oneStep?.runId !== turn.runId) return;
    this.#oneStep.ended = true;
    turn.stop();
  }

  runUntilIdle(): Promise<number | null> {
    this.#oneStep = null;
    return this.#drive();
  }

  async runOneStep(runId: string): Promise<{ readonly ended: boolean; readonly nextDueAt: number | null }> {
    const oneStep = { runId, ended: false };
    this.#oneStep = oneStep;
    const nextDueAt = await this.#drive();
    return { ended: oneStep.ended, nextDueAt };
  }

  async #drive(): Promise<number | null> {
    this.#drives += 1;
    try {
      return await inCleanContext(() => this.#runUntilIdle());
    } finally {
      this.#drives -= 1;
    }
  }

  async #runUntilIdle(): Promise<number | null> {
    for (;;) {
      await this.#settle();
      const before = this.#claiming.claimed;
      this.#claiming.soon();
      await this.#settle();
      if (this.#claiming.claimed === before) return this.#claiming.nextDueAt;
    }
  }

  /** Comes back when the worker has no run and asks for none. */
  async #settle(): Promise<void> {
    while (this.#claiming.underWay !== null || (this.#session()?.size ?? 0) > 0 || this.#claiming.reserved > 0) {
      await this.#claiming.underWay;
      await Promise.all([...(this.#session()?.turns.values() ?? [])].map((turn) => turn.poke()));
      await yieldToEventLoop(this.#runtime);
    }
  }
}
