/** The generator "mulberry32": small, seeded, and good enough to draw random operations. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed * 0x9e3779b9;
  }

  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  integerBelow(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  pick<T>(items: readonly T[]): T | undefined {
    return items[this.integerBelow(items.length)];
  }

  /** Returns up to `maxCount` different items, in random order. */
  sample<T>(items: readonly T[], maxCount: number): T[] {
    const remaining = [...items];
    const howMany = Math.min(remaining.length, this.integerBelow(maxCount + 1));
    return Array.from({ length: howMany }, () => remaining.splice(this.integerBelow(remaining.length), 1)[0] as T);
  }

  pickWeighted<T>(choices: readonly [weight: number, choice: T][]): T {
    let left = this.#next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, choice] of choices) {
      left -= weight;
      if (left < 0) return choice;
    }
    return (choices[0] as [number, T])[1];
  }
}
