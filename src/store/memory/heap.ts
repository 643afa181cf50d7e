/** A binary heap: the smallest by `before` comes out first. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    let child = items.push(item) - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!this.#before(item, items[parent] as T)) break;
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
      if (child + 1 < items.length && this.#before(items[child + 1] as T, items[child] as T)) child += 1;
      if (!this.#before(items[child] as T, last)) break;
      items[parent] = items[child] as T;
      parent = child;
    }
    items[parent] = last;
    return top;
  }
}
