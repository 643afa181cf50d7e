/**
 * A map that keeps only the most recently used entries: a listener that runs for months must not keep an entry for
 * every run.
 */
export class LruMap<Value> {
  readonly #entries = new Map<string, Value>();
  readonly #maxEntries: number;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get(key: string): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    // A Map keeps the order of insertion, so inserting the entry again makes it the last one.
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#maxEntries) return;
    const [oldest] = this.#entries.keys();
    this.#entries.delete(oldest as string);
  }

  /** Removes the entry and returns its value. */
  take(key: string): Value | undefined {
    const value = this.#entries.get(key);
    this.#entries.delete(key);
    return value;
  }
}
