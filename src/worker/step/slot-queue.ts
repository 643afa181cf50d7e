/** The steps of one run that wait for a semaphore slot. While a step waits for its slot, the run is not parked. */
import type { Semaphore } from "../../concurrency/semaphore.js";

export class SlotQueue {
  /** One function per waiting step, which cancels its wait; the set is created when the first step has to wait. */
  #cancelFunctions: Set<() => void> | null = null;

  get waitingCount(): number {
    return this.#cancelFunctions?.size ?? 0;
  }

  /**
   * Calls `onAcquired` with the function that releases the slot, at once if a slot is free. `onCanceled` is called if the wait
   * is canceled.
   */
  enqueue(
    semaphore: Pick<Semaphore, "acquire">,
    onAcquired: (release: () => void) => void,
    onCanceled: (() => void) | null = null,
  ): void {
    let isAcquired = false;
    const cancel = () => {
      release();
      onCanceled?.();
    };
    const release = semaphore.acquire((releaseSlot) => {
      isAcquired = true;
      this.#cancelFunctions?.delete(cancel);
      onAcquired(releaseSlot);
    });
    if (!isAcquired) (this.#cancelFunctions ??= new Set()).add(cancel);
  }

  /** Cancels all waits, because no step of the run may start any more. */
  cancelAll(): void {
    if (this.#cancelFunctions === null) return;
    for (const cancel of this.#cancelFunctions) cancel();
    this.#cancelFunctions.clear();
  }
}
