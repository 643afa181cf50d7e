/** Writes items in batches: items that are added while a write is in progress are written together by the next one. */

export interface BatcherOptions<Item> {
  readonly write: (batch: readonly Item[]) => Promise<void>;
  /** How many of the waiting items, from the first, the next write takes. */
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
    // The write is deferred by a microtask so that items added in the same tick share it.
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
 * How many items, from the first, go into one write. The item that exceeds the byte limit is included, so a single large
 * item is still written.
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
