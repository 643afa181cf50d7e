/** Writes what is added: what gathers while one write is under way goes into the next. */

export interface LaneOptions<Item> {
  readonly write: (batch: readonly Item[]) => Promise<void>;
  /** How many of those that wait go into one write. */
  readonly fits: (waiting: readonly Item[]) => number;
  /** How many writes there may be side by side. */
  readonly mostAtOnce: number;
}

export class Batcher<Item> {
  readonly #options: LaneOptions<Item>;
  readonly #waiting: Item[] = [];
  #writes = 0;
  #isSettingOut = false;

  constructor(options: LaneOptions<Item>) {
    this.#options = options;
  }

  add(item: Item): void {
    this.#waiting.push(item);
    if (this.#isSettingOut || this.#writes >= this.#options.mostAtOnce) return;
    this.#isSettingOut = true;
    // What is added in this same tick comes along.
    queueMicrotask(() => void this.#setOut());
  }

  async #setOut(): Promise<void> {
    this.#isSettingOut = false;
    this.#writes += 1;
    while (this.#waiting.length > 0) {
      await this.#options.write(this.#waiting.splice(0, this.#options.fits(this.#waiting)));
    }
    this.#writes -= 1;
  }
}

/** How many items, from the first, one write takes. */
export function howManyFit<Item>(
  items: readonly Item[],
  sizeOf: (item: Item) => number,
  most: { readonly count: number; readonly bytes: number },
): number {
  let count = 0;
  for (let bytes = 0; count < items.length && count < most.count && bytes < most.bytes; count += 1)
    bytes += sizeOf(items[count] as Item);
  return count;
}
