/** A counting semaphore with a FIFO wait queue. */
export class Semaphore {
  #free: number;
  readonly #line = new Set<() => void>();

  constructor(count: number) {
    this.#free = count;
  }

  /** Calls `enter` when there is a place, at once if there is one now. Returns how to leave it, or the line. */
  take(enter: (leave: () => void) => void): () => void {
    let stands: "in line" | "inside" | "outside" = "in line";
    const admit = () => {
      // It may have left between being called and coming.
      if (stands === "outside") return this.#passOn();
      stands = "inside";
      enter(leave);
    };
    const leave = () => {
      if (stands === "in line") this.#line.delete(admit);
      else if (stands === "inside") this.#passOn();
      stands = "outside";
    };
    if (this.#free > 0) {
      this.#free -= 1;
      admit();
    } else this.#line.add(admit);
    return leave;
  }

  #passOn(): void {
    const [next] = this.#line;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#line.delete(next);
    // Not from here: the next one may leave at once, and a long line would become a deep stack.
    queueMicrotask(next);
  }
}
