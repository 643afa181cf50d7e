/** Writes what is added: what gathers while one write is under way goes into the next. */

export interface BatcherOptions<Item> {
  readonly write: (batch: readonly Item[]) => Promise<void>;
  /** How many of those that wait go into one write. */
  readonly batchSizeOf: (waiting: readonly Item[]) => number;
  /** How many writes there may be side by side. */
  readonly maxConcurrentWrites: number;
}

export class Batcher<Item> {
  readonly #options: BatcherOptions<Item>;
  readonly #waiting: Item[] = [];
  #activeWrites = 0;
  #isFlushScheduled = false;

  constructor(options: BatcherOptions<Item>) {
    this.#options = options;
  }

  add(item: Item): void {
    this.#waiting.push(item);
    if (this.#isFlushScheduled || this.#activeWrites >= this.#options.maxConcurrentWrites) return;
    this.#isFlushScheduled = true;
    // What is added in this same tick comes along.
    queueMicrotask(() => void this.#flush());
  }

  async #flush(): Promise<void> {
    this.#isFlushScheduled = false;
    this.#activeWrites += 1;
    while (this.#waiting.length > 0) {
      await this.#options.write(this.#waiting.splice(0, this.#options.batchSizeOf(this.#waiting)));
    }
    this.#activeWrites -= 1;
  }
}

/** How many items, from the first, one write takes. */
export function countFitting<Item>(
  items: readonly Item[],
  sizeOf: (item: Item) => number,
  limits: { readonly count: number; readonly bytes: number },
): number {
  let count = 0;
  for (let bytes = 0; count < items.length && count < limits.count && bytes < limits.bytes; count += 1)
    bytes += sizeOf(items[count] as Item);
  return count;
}
