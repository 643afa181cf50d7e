/** The steps of one run that stand in line for a place: while they do, the run is not parked. */
import type { Semaphore } from "../../concurrency/semaphore.js";

export class SlotQueue {
  /** Made when a step first has to wait. */
  #waiting: Set<() => void> | null = null;

  get waitingCount(): number {
    return this.#waiting?.size ?? 0;
  }

  /** `begin` gets how to give the place back. */
  enqueue(semaphore: Semaphore, onAcquired: (release: () => void) => void): void {
    let isAcquired = false;
    const release = semaphore.acquire((releaseSlot) => {
      isAcquired = true;
      this.#waiting?.delete(releaseSlot);
      onAcquired(releaseSlot);
    });
    if (!isAcquired) (this.#waiting ??= new Set()).add(release);
  }

  /** Nothing may begin any more. */
  cancelAll(): void {
    if (this.#waiting === null) return;
    for (const release of this.#waiting) release();
    this.#waiting.clear();
  }
}
