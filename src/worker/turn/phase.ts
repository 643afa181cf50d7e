/** The course of a turn: what has come up that keeps user code from beginning anything new, or from counting at all. */
import { isCompensation } from "../../core/run/compensation.js";
import type { RunState } from "../../core/run/state.js";

export class Course {
  /** The worker stops: what runs may finish, then the run goes to whoever is next. */
  stopping = false;
  /** The next step is for other workers, or for later. */
  handingOver = false;
  /** It was paused and resumed within this turn, or told to try a node again: the code has its answer, so it begins again. */
  startOver = false;
  /** Something only a person can solve has come up; the pause is on its way into the log. */
  holding = false;
  /** The run is being parked or finished: it is only a matter of the commit. */
  leaving = false;
  /** The run fails; only this step may still begin. */
  lastStep: string | null = null;
  /** What was done is being undone: nothing else may begin. */
  undoing = false;
  /** Steps whose jobs have ended while the run is paused: how they ended is recorded, and nothing else begins. */
  settling: ReadonlySet<string> | null = null;
  readonly #turn: { readonly over: boolean };
  readonly #state: RunState;

  /** @param turn over, when the run was let go of or is not ours any more */
  constructor(turn: { readonly over: boolean }, state: RunState) {
    this.#turn = turn;
    this.#state = state;
  }

  /** No new user code may begin: the run is being paused, canceled, handed over, or is not ours any more. */
  get halted(): boolean {
    return this.stopping || this.handingOver || this.suspended;
  }

  /** Nor would it count any more what the code comes to. */
  get suspended(): boolean {
    return (
      this.#turn.over ||
      this.leaving ||
      this.startOver ||
      this.holding ||
      this.lastStep !== null ||
      this.undoing ||
      this.#state.expired !== null ||
      this.#state.paused !== null ||
      this.#state.cancel !== null ||
      this.#state.ending !== null
    );
  }

  /** The code was stopped in the middle: whoever has the run next goes on at once. */
  get cutShort(): boolean {
    return this.stopping || this.startOver || this.handingOver;
  }

  get failing(): boolean {
    return this.lastStep !== null;
  }

  mayBegin(key: string): boolean {
    const stays = !this.#turn.over && !this.leaving;
    if (this.undoing && isCompensation(key)) return stays && this.#state.paused === null;
    if (this.settling?.has(key) === true) return stays && !this.stopping && this.#state.cancel === null;
    return !this.halted || (this.lastStep === key && stays && this.#state.cancel === null);
  }
}
