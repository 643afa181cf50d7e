/** The steps of one run that stand in line for a place: while they do, the run is not parked. */
import type { Semaphore } from "../../concurrency/semaphore.js";

export class SlotQueue {
  /** Made when a step first has to wait. */
  #waiting: Set<() => void> | null = null;

  get waitingCount(): number {
    return this.#waiting?.size ?? 0;
  }

  /** `begin` gets how to give the place back. */
  enqueue(semaphore: Semaphore, begin: (leave: () => void) => void): void {
    let entered = false;
    const leave = semaphore.acquire((leaveIt) => {
      entered = true;
      this.#waiting?.delete(leaveIt);
      begin(leaveIt);
    });
    if (!entered) (this.#waiting ??= new Set()).add(leave);
  }

  /** Nothing may begin any more. */
  cancelAll(): void {
    if (this.#waiting === null) return;
    for (const leave of this.#waiting) leave();
    this.#waiting.clear();
  }
}
