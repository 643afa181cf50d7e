/**
 * The phase of a turn is one value, changed by one function (`nextPhase`). Conditions that can arise in any phase (the
 * worker stops, the code must restart, …) are plain flags beside it. Phase and flags together decide what may start.
 */
import { isCompensation } from "../../core/run/compensation.js";
import type { RunState } from "../../core/run/state.js";

/** A phase in which the run is executed. */
export type ActivePhase =
  /**
   * The code has not been called in this turn, because messages and due timers are processed first.
   * `endedJobSteps` is set if the run is paused and the jobs of these steps have ended. The code is then called to record
   * their outcome, and no other step starts.
   */
  | { readonly kind: "waking"; readonly endedJobSteps: ReadonlySet<string> | null }
  /** The code has been called in this turn; it may be running, waiting or ended. */
  | { readonly kind: "running"; readonly endedJobSteps: ReadonlySet<string> | null }
  /** Completed steps are being compensated; nothing else may start. */
  | { readonly kind: "compensating" }
  /** The run has failed; only this step, which calls onFailure, may still start. */
  | { readonly kind: "failing"; readonly lastStep: string };

export type TurnPhase =
  | ActivePhase
  /** The commit that parks or ends the run is under way. If it is refused, the turn returns to the phase `from`. */
  | { readonly kind: "parking"; readonly from: ActivePhase }
  | { readonly kind: "finishing"; readonly from: ActivePhase }
  /** The worker no longer owns the run, or the run has ended. */
  | { readonly kind: "ended" };

export type PhaseEvent =
  | { readonly type: "jobs ended"; readonly steps: ReadonlySet<string> }
  | { readonly type: "code called" }
  | { readonly type: "compensation started" }
  | { readonly type: "last step started"; readonly step: string }
  | { readonly type: "parking started" }
  | { readonly type: "finishing started" }
  /** The commit that would have parked or ended the run was refused, or failed. */
  | { readonly type: "turn end refused" }
  | { readonly type: "turn ended" };

const waking: ActivePhase = { kind: "waking", endedJobSteps: null };
const running: ActivePhase = { kind: "running", endedJobSteps: null };
const compensating: ActivePhase = { kind: "compensating" };
const ended: TurnPhase = { kind: "ended" };
/** A shared object, because nearly every run ends with this phase. */
const finishingFromRunning: TurnPhase = { kind: "finishing", from: running };

/** Returns the phase after this event, or null if the event does not apply in this phase, which then does not change. */
export function nextPhase(phase: TurnPhase, event: PhaseEvent): TurnPhase | null {
  if (phase.kind === "ended") return null;
  if (event.type === "turn ended") return ended;
  if (phase.kind === "parking" || phase.kind === "finishing")
    return event.type === "turn end refused" ? phase.from : null;
  switch (event.type) {
    case "jobs ended":
      return phase.kind === "waking" ? { kind: "waking", endedJobSteps: event.steps } : null;
    case "code called":
      if (phase.kind !== "waking") return null;
      return phase.endedJobSteps === null ? running : { kind: "running", endedJobSteps: phase.endedJobSteps };
    case "compensation started":
      return phase.kind === "running" ? compensating : null;
    case "last step started":
      return phase.kind === "running" || phase.kind === "compensating"
        ? { kind: "failing", lastStep: event.step }
        : null;
    case "parking started":
      return { kind: "parking", from: phase };
    case "finishing started":
      return phase === running ? finishingFromRunning : { kind: "finishing", from: phase };
    case "turn end refused":
      return null;
  }
}

/**
 * Combines the phase, the flags and the state of the run into predicates, from weak to strong: `isInterrupted` (the
 * next owner calls the code again at once), `isDraining` (nothing new starts), `ignoresHandlerResult` (the outcome of
 * the handler is ignored, too), `isEndingTurn` (the last commit of the turn is under way).
 */
export class PhaseTracker {
  /** Set when the worker stops: running steps may finish, then the run is released and its next owner resumes it. */
  isStopping = false;
  /** Set when other workers must execute the next step, or when the run is parked so that waiting runs go first. */
  isHandingOver = false;
  /**
   * Set when the run was resumed or a node was reopened after the code was called: results that it has seen are
   * obsolete.
   */
  mustRestartCode = false;
  /** Set when a pause with an error was submitted. */
  isPausing = false;
  #current: TurnPhase = waking;
  readonly #turn: { readonly isOver: boolean };
  readonly #state: RunState;

  /** @param turn `isOver` is true once the run was parked or ended, or the worker lost it */
  constructor(turn: { readonly isOver: boolean }, state: RunState) {
    this.#turn = turn;
    this.#state = state;
  }

  get current(): TurnPhase {
    return this.#current;
  }

  /** Applies the event. Returns false, and changes nothing, if the event does not apply in the current phase. */
  on(event: PhaseEvent): boolean {
    const next = nextPhase(this.#current, event);
    if (next === null) return false;
    this.#current = next;
    return true;
  }

  /** The current phase, or the phase before it while the commit that parks or ends the run is under way. */
  get #active(): TurnPhase {
    const phase = this.#current;
    return phase.kind === "parking" || phase.kind === "finishing" ? phase.from : phase;
  }

  get isEndingTurn(): boolean {
    return this.#current.kind === "parking" || this.#current.kind === "finishing";
  }

  /** Whether the code was called in this turn. */
  get hasCalledCode(): boolean {
    return this.#active.kind !== "waking";
  }

  get endedJobSteps(): ReadonlySet<string> | null {
    const phase = this.#active;
    return phase.kind === "waking" || phase.kind === "running" ? phase.endedJobSteps : null;
  }

  /** Whether completed steps are being compensated, or onFailure is being called. */
  get isUnwinding(): boolean {
    const { kind } = this.#active;
    return kind === "compensating" || kind === "failing";
  }

  get lastStep(): string | null {
    const phase = this.#active;
    return phase.kind === "failing" ? phase.lastStep : null;
  }

  get isFailing(): boolean {
    return this.#active.kind === "failing";
  }

  /** True when no new user code may start: the run is being paused, canceled or handed over, or the turn is ending. */
  get isDraining(): boolean {
    return this.isStopping || this.isHandingOver || this.ignoresHandlerResult;
  }

  /**
   * True when the handler's outcome is ignored: the run is paused, canceled or being compensated, or the turn is
   * ending.
   */
  get ignoresHandlerResult(): boolean {
    const { kind } = this.#current;
    return (
      this.#turn.isOver ||
      (kind !== "running" && kind !== "waking") ||
      this.mustRestartCode ||
      this.isPausing ||
      this.#state.timeoutFailure !== null ||
      this.#state.paused !== null ||
      this.#state.cancelRequest !== null ||
      this.#state.ending !== null
    );
  }

  /** True when the code was stopped before it ended, so that the next owner must call it again at once. */
  get isInterrupted(): boolean {
    return this.isStopping || this.mustRestartCode || this.isHandingOver;
  }

  /** Whether the step with this key may start. While draining, only compensations, onFailure and ended jobs may. */
  mayStart(key: string): boolean {
    if (!this.isDraining) return true;
    const phase = this.#current;
    if (this.#turn.isOver) return false;
    if (phase.kind === "compensating") return isCompensation(key) && this.#state.paused === null;
    if (this.#state.cancelRequest !== null) return false;
    if (phase.kind === "failing") return phase.lastStep === key;
    if (phase.kind !== "waking" && phase.kind !== "running") return false;
    return phase.endedJobSteps?.has(key) === true && !this.isStopping;
  }
}
