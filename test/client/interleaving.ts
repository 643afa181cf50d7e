/**
 * Runs several clients against one store and decides by a seed whose store call goes next: every call waits until it is
 * let through, one at a time. A race is therefore identified by a number and can be repeated.
 */
import { Pawl } from "pawl";
import { seededRandom } from "../../src/core/naming/ids.js";
import type { Store } from "../../src/store/contract/store.js";
import { silent } from "../support/virtual-worlds.js";

export class Interleaving {
  readonly #random: () => number;
  readonly #waiting: (() => Promise<void>)[] = [];
  #ended = false;

  constructor(random: () => number) {
    this.#random = random;
  }

  client(store: Store): Pawl {
    return new Pawl(this.gated(store), silent);
  }

  gated(store: Store): Store {
    return new Proxy(store, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown;
        if (typeof value !== "function" || name === "watch") return value;
        return (...args: unknown[]) => {
          const call = () => Reflect.apply(value, target, args) as Promise<unknown>;
          return this.#ended ? call() : this.#whenChosen(call);
        };
      },
    });
  }

  /** Resolves when all clients have ended, successfully or not. */
  async run(clients: readonly (() => Promise<unknown>)[]): Promise<void> {
    let left = clients.length;
    for (const client of clients)
      void client()
        .catch(() => {})
        .finally(() => (left -= 1));
    while (left > 0) {
      // Let everything that the last call triggered run first.
      await new Promise((resolve) => setImmediate(resolve));
      const index = Math.floor(this.#random() * this.#waiting.length);
      await this.#waiting.splice(index, 1)[0]?.();
    }
    this.#ended = true;
  }

  #whenChosen(call: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(async () => {
        const answer = call();
        answer.then(resolve, reject);
        await answer.catch(() => {});
      });
    });
  }
}

/** Calls the trial once per schedule; an error names the schedule that caused it. */
export async function forEachInterleaving(
  count: number,
  trial: (interleaving: Interleaving) => Promise<void>,
): Promise<void> {
  for (let seed = 0; seed < count; seed += 1) {
    try {
      await trial(new Interleaving(seededRandom(`interleaving ${seed}`)));
    } catch (error) {
      throw new Error(`Interleaving ${seed} went wrong.`, { cause: error });
    }
  }
}
