/** Writes items in batches: items that are added while a write is in progress are written together by the next write. */

export interface BatcherOptions<Item> {
  readonly write: (batch: readonly Item[]) => Promise<void>;
  /** Returns how many of the waiting items the next write contains, counted from the first item. */
  readonly batchSizeOf: (waiting: readonly Item[]) => number;
  /** How many writes may be in progress at the same time. */
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
    // The write is deferred by a microtask, so that items that are added in the same tick are written together.
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

/**
 * Returns how many items, counted from the first, are written together. The item with which the sum reaches the byte limit
 * is included, so that an item which alone exceeds the limit is still written.
 */
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
