/** Bounds how many streams and long polls are open at a time, so that idle clients cannot use up the server. */
import { HttpError, retrySoon } from "../problem.js";

export class StreamSlots {
  readonly #max: number;
  #openCount = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get openCount(): number {
    return this.#openCount;
  }

  /** Takes a slot. The function that it returns gives the slot back; calling it again does nothing. */
  take(): () => void {
    if (this.#openCount >= this.#max)
      throw new HttpError(
        503,
        "TOO_MANY_STREAMS",
        `${this.#max} streams are open already; try again later.`,
        retrySoon,
      );
    this.#openCount += 1;
    let isHeld = true;
    return () => {
      if (isHeld) this.#openCount -= 1;
      isHeld = false;
    };
  }
}
