/** Random numbers that a seed determines. Each part of a world draws from a stream of its own, so that a change of one does not move the others. */
import { seeded } from "../../support/seeded-random.js";

export class Random {
  readonly next: () => number;

  constructor(seed: number, stream: string) {
    let mixed = (seed ^ 0x9e3779b9) >>> 0;
    for (let at = 0; at < stream.length; at += 1) mixed = Math.imul(mixed ^ stream.charCodeAt(at), 0x01000193) >>> 0;
    this.next = seeded(mixed);
    // Streams of neighbouring seeds are alike in their first numbers.
    for (let round = 0; round < 4; round += 1) this.next();
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from `from` to `to`, both included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  between(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.int(0, items.length - 1)] as T;
  }

  /** One of the names, each as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      left -= weight;
      if (left < 0) return name;
    }
    return (entries.at(-1) as [Name, number])[0];
  }
}
