/** A counting semaphore with a FIFO wait queue. */
export class Semaphore {
  #freeSlots: number;
  readonly #waiters = new Set<() => void>();

  constructor(count: number) {
    this.#freeSlots = count;
  }

  /**
   * Calls `onAcquired` as soon as a slot is free, synchronously if one is free now. The returned function releases the slot,
   * or leaves the wait queue if no slot was granted yet; calling it twice is harmless.
   */
  acquire(onAcquired: (release: () => void) => void): () => void {
    let status: "queued" | "acquired" | "released" = "queued";
    const grant = () => {
      // The caller may have released between the microtask's scheduling and its execution.
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
    const [next] = this.#waiters;
    if (next === undefined) {
      this.#freeSlots += 1;
      return;
    }
    this.#waiters.delete(next);
    // A microtask, because a waiter that releases at once would make a long queue a deep call stack.
    queueMicrotask(next);
  }
}
