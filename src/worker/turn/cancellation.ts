/**
 * Aborts the running code of a canceled run and stops waiting for it after the grace period. The object is created when
 * user code reads an abort signal or when the run is canceled.
 */
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

  abortSignalOfCode(reason: unknown): void {
    this.#controller?.abort(reason);
  }

  /**
   * Aborts the running steps. The turn waits up to `cancelGraceMs` for them to end, or not at all if the cancel is
   * forced.
   */
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

  stop(): void {
    if (this.#timer !== null) this.#turn.host.runtime.clearTimeout(this.#timer);
  }
}
