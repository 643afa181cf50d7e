/** A canceled run tells its code to hurry, and waits for it only so long. Made when there is code that wants to know. */
import { RunCanceledError } from "../../core/errors/errors.js";
import type { RunState } from "../../core/run/state.js";
import type { Timer } from "../../runtime/runtime.js";
import type { ExecutePort, IdlePort, PhasePort, RunPort } from "./ports.js";

type CanceledTurn = RunPort & PhasePort & IdlePort & Pick<ExecutePort, "attempts"> & { abort(reason: unknown): void };

export class Cancellation {
  readonly #turn: CanceledTurn;
  #controller: AbortController | null = null;
  #timer: Timer | null = null;
  #isStarted = false;

  constructor(turn: CanceledTurn) {
    this.#turn = turn;
  }

  get abortSignal(): AbortSignal {
    const { state, isDraining } = this.#turn;
    this.#controller ??= new AbortController();
    if (isDraining && !this.#controller.signal.aborted && state.cancelRequest !== null) this.#controller.abort();
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller?.abort(reason);
  }

  /** What runs is told, and given up on when it takes longer than the grace; at once, when the cancel is forced. */
  start({ force, reason }: NonNullable<RunState["cancelRequest"]>): void {
    const { host, attempts, runId } = this.#turn;
    if (force) attempts.stopWaiting();
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#turn.abort(new RunCanceledError(runId, reason ?? undefined));
    this.#timer = host.runtime.setTimeout(() => {
      attempts.stopWaiting();
      this.#turn.scheduleIdleCheck();
    }, host.cancelGraceMs);
  }

  /** What undoes the run is not given up on. */
  stop(): void {
    if (this.#timer !== null) this.#turn.host.runtime.clearTimeout(this.#timer);
  }
}
