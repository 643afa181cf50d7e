/** A counting semaphore with a FIFO wait queue. */
export class Semaphore {
  #freeSlots: number;
  readonly #waiters = new Set<() => void>();

  constructor(count: number) {
    this.#freeSlots = count;
  }

  /** Calls `enter` when there is a place, at once if there is one now. Returns how to leave it, or the line. */
  acquire(onAcquired: (release: () => void) => void): () => void {
    let status: "in line" | "inside" | "outside" = "in line";
    const grant = () => {
      // It may have left between being called and coming.
      if (status === "outside") return this.#grantNext();
      status = "inside";
      onAcquired(release);
    };
    const release = () => {
      if (status === "in line") this.#waiters.delete(grant);
      else if (status === "inside") this.#grantNext();
      status = "outside";
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
    // Not from here: the next one may leave at once, and a long line would become a deep stack.
    queueMicrotask(next);
  }
}
