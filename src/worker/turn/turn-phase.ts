/**
 * Where a turn stands with its run. The phase is one value, moved by one function (`nextPhase`); what may come up in any
 * phase (the worker stops, the run is to begin again, …) stands beside it as plain facts. Both say together what may begin.
 */
import { isCompensation } from "../../core/run/compensation.js";
import type { RunState } from "../../core/run/state.js";

/** A phase in which the run is executed. */
export type ActivePhase =
  /**
   * The code has not been called in this turn: messages and time that has passed come first.
   * `settling`: the run is paused, and jobs of these steps have ended; how they ended is recorded, and nothing else begins.
   */
  | { readonly kind: "waking"; readonly endedJobSteps: ReadonlySet<string> | null }
  /** The code has been called. It may have ended, or wait. */
  | { readonly kind: "running"; readonly endedJobSteps: ReadonlySet<string> | null }
  /** What was done is being undone: nothing else may begin. */
  | { readonly kind: "compensating" }
  /** The run has failed; only this step, which calls onFailure, may still begin. */
  | { readonly kind: "failing"; readonly lastStep: string };

export type TurnPhase =
  | ActivePhase
  /** The run is being let go of, or ended: it is only a matter of the commit. If that is refused, it goes on as before. */
  | { readonly kind: "parking"; readonly from: ActivePhase }
  | { readonly kind: "finishing"; readonly from: ActivePhase }
  /** The run is not this worker's any more, or has ended. */
  | { readonly kind: "ended" };

export type PhaseEvent =
  | { readonly type: "jobs ended"; readonly steps: ReadonlySet<string> }
  | { readonly type: "code called" }
  | { readonly type: "undoing began" }
  | { readonly type: "last step began"; readonly step: string }
  | { readonly type: "parking began" }
  | { readonly type: "finishing began" }
  /** The commit that would have parked or ended the run was refused, or could not be made. */
  | { readonly type: "leaving refused" }
  | { readonly type: "turn ended" };

const waking: ActivePhase = { kind: "waking", endedJobSteps: null };
const running: ActivePhase = { kind: "running", endedJobSteps: null };
const compensating: ActivePhase = { kind: "compensating" };
const ended: TurnPhase = { kind: "ended" };
/** How nearly every run ends: not an object for each. */
const finishingFromRunning: TurnPhase = { kind: "finishing", from: running };

/** The phase after this event; null when the event has no place in this phase, which stays as it is then. */
export function nextPhase(phase: TurnPhase, event: PhaseEvent): TurnPhase | null {
  if (phase.kind === "ended") return null;
  if (event.type === "turn ended") return ended;
  if (phase.kind === "parking" || phase.kind === "finishing")
    return event.type === "leaving refused" ? phase.from : null;
  switch (event.type) {
    case "jobs ended":
      return phase.kind === "waking" ? { kind: "waking", endedJobSteps: event.steps } : null;
    case "code called":
      if (phase.kind !== "waking") return null;
      return phase.endedJobSteps === null ? running : { kind: "running", endedJobSteps: phase.endedJobSteps };
    case "undoing began":
      return phase.kind === "running" ? compensating : null;
    case "last step began":
      return phase.kind === "running" || phase.kind === "compensating"
        ? { kind: "failing", lastStep: event.step }
        : null;
    case "parking began":
      return { kind: "parking", from: phase };
    case "finishing began":
      return phase === running ? finishingFromRunning : { kind: "finishing", from: phase };
    case "leaving refused":
      return null;
  }
}

/**
 * What the phase, the facts beside it and the state of the run mean together, from weak to strong: `cutShort` (the code is to be
 * called again at once by the next owner), `halted` (nothing new begins), `suspended` (nor does the end of the handler count),
 * `leaving` (the last commit of the turn is being made).
 */
export class PhaseTracker {
  /** The worker stops: what runs may finish, then the next owner goes on. */
  isStopping = false;
  /** The next step is for other workers, or for later. */
  isHandingOver = false;
  /** The run was paused and resumed within this turn, or told to try a node again: its code has its answer, and begins again. */
  mustRestartCode = false;
  /** Something that only a person can solve has come up; the pause is on its way into the log. */
  isPausing = false;
  #current: TurnPhase = waking;
  readonly #turn: { readonly isOver: boolean };
  readonly #state: RunState;

  /** @param turn over, when the run was let go of or is not ours any more */
  constructor(turn: { readonly isOver: boolean }, state: RunState) {
    this.#turn = turn;
    this.#state = state;
  }

  get current(): TurnPhase {
    return this.#current;
  }

  /** False: the event has no place in the phase, and nothing has changed. */
  on(event: PhaseEvent): boolean {
    const next = nextPhase(this.#current, event);
    if (next === null) return false;
    this.#current = next;
    return true;
  }

  /** The phase in which the run is executed, also while it is being let go of. */
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

  /** What was done is being undone, or the last step of a run that has failed is called. */
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

  /** No new user code may begin: the run is being paused, canceled, handed over, or is not ours any more. */
  get isDraining(): boolean {
    return this.isStopping || this.isHandingOver || this.ignoresHandlerResult;
  }

  /** What the handler returns or throws counts for nothing any more: the run is paused, canceled, undone or let go of. */
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

  /** The code was stopped in the middle: the next owner calls it again at once. */
  get isInterrupted(): boolean {
    return this.isStopping || this.mustRestartCode || this.isHandingOver;
  }

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
