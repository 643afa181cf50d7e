/** A binary heap: `pop` returns the item that `isBefore` puts before all others. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    let child = items.push(item) - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!this.#isBefore(item, items[parent] as T)) break;
      items[child] = items[parent] as T;
      child = parent;
    }
    items[child] = item;
  }

  pop(): T | undefined {
    const items = this.#items;
    const top = items[0];
    const last = items.pop();
    if (items.length === 0 || last === undefined) return top;
    let parent = 0;
    for (;;) {
      let child = 2 * parent + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && this.#isBefore(items[child + 1] as T, items[child] as T)) child += 1;
      if (!this.#isBefore(items[child] as T, last)) break;
      items[parent] = items[child] as T;
      parent = child;
    }
    items[parent] = last;
    return top;
  }
}
