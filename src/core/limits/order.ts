/** How the order of admission is written into columns. */

/**
 * Of waiting runs with the same priority, those that resume are admitted before those that begin. While such a task waits,
 * its due time is this much earlier, so the index of ready tasks has them in this order. The number is larger than any
 * instant, so the due time is negative and can be recognized.
 */
export const resumedOffsetMs = 10_000_000_000_000;

/** When a task became due. */
export const dueAtOf = (storedDueAt: number): number => (storedDueAt < 0 ? storedDueAt + resumedOffsetMs : storedDueAt);

/** A turn is an instant in microseconds, so that turns of different processes need no common counter. */
export const turnsPerMs = 1_000;

/**
 * The turn of the first of some classes that a start creates. They come before every turn that an admission gives in the
 * same millisecond: a class that was just created has had none.
 */
export const firstTurnOfNew = (at: number, count: number): number => Math.floor(at) * turnsPerMs - count;

/** Numbers the turns of classes. They grow with the clock of the store. Within a process no two turns are the same. */
export class TurnCounter {
  #last = 0;

  /** Returns the first of `count` turns. */
  take(at: number, count = 1): number {
    const first = Math.max(this.#last + 1, Math.floor(at) * turnsPerMs);
    this.#last = first + count - 1;
    return first;
  }

  /** Turns that were given elsewhere are not given again. */
  skipTo(last: number): void {
    this.#last = Math.max(this.#last, last);
  }
}
