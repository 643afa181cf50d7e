/** A counting semaphore with a FIFO wait queue. */
export class Semaphore {
  #freeSlots: number;
  readonly #waiters = new Set<() => void>();

  constructor(count: number) {
    this.#freeSlots = count;
  }

  /**
   * Calls `onAcquired` as soon as a slot is free, synchronously if a slot is free now. The returned function releases the
   * slot, or removes the caller from the wait queue if no slot was granted yet. A second call of that function has no
   * effect.
   */
  acquire(onAcquired: (release: () => void) => void): () => void {
    let status: "queued" | "acquired" | "released" = "queued";
    const grant = () => {
      // The caller may have called `release` after `#grantNext` scheduled this microtask, so the next waiter gets the slot.
      if (status === "released") return this.#grantNext();
      status = "acquired";
      onAcquired(release);
    };
    const release = () => {
      if (status === "queued") this.#waiters.delete(grant);
      else if (status === "acquired") this.#grantNext();
      status = "released";
    };
    if (this.#freeSlots > 0) {
      this.#freeSlots -= 1;
      grant();
    } else this.#waiters.add(grant);
    return release;
  }

  #grantNext(): void {
    const [nextWaiter] = this.#waiters;
    if (nextWaiter === undefined) {
      this.#freeSlots += 1;
      return;
    }
    this.#waiters.delete(nextWaiter);
    // Called in a microtask, because a long queue of waiters that release at once would otherwise overflow the call stack.
    queueMicrotask(nextWaiter);
  }
}
