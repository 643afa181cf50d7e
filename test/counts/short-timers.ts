/** Tracks short timers: those of a second or less that have neither fired nor been cleared. */

const shortMs = 1_000;

export class ShortTimers {
  readonly #pending = new Set<unknown>();
  readonly #real = { setTimeout, clearTimeout };

  get pending(): number {
    return this.#pending.size;
  }

  /** Tracks timers from now on, until `unwatch`. */
  watch(): void {
    const { setTimeout: set, clearTimeout: clear } = this.#real;
    const watched = (callback: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
      const timer = set(() => {
        this.#pending.delete(timer);
        callback(...args);
      }, ms);
      if (ms <= shortMs) this.#pending.add(timer);
      return timer;
    };
    globalThis.setTimeout = Object.assign(watched, set) as typeof setTimeout;
    globalThis.clearTimeout = (timer) => {
      this.#pending.delete(timer);
      clear(timer);
    };
  }

  unwatch(): void {
    Object.assign(globalThis, this.#real);
  }
}
