/** A store whose changes of schedules are hit by a fault: they are lost, or their answer is. */
import type { Fence, Store } from "../../../src/store/contract/store.js";

export interface Fault {
  /** The number of the change that it hits, from 1. */
  readonly change: number;
  /** "before": the change is not written. "after": it is written, and the process does not learn of it. */
  readonly when: "before" | "after";
  /** "dies": nothing more is heard of the process. "error": it goes on after an error. */
  readonly fate: "dies" | "error";
}

const never = () => new Promise<never>(() => {});

export class FaultyStore {
  readonly store: Store;
  readonly died: Promise<"dead">;
  /** How many changes the process has made. */
  changes = 0;
  readonly #inner: Store;
  readonly #fault: Fault | null;
  #isDead = false;
  #fence: Fence | null = null;
  #resolveDeath: () => void = () => {};

  constructor(inner: Store, fault: Fault | null) {
    this.#inner = inner;
    this.#fault = fault;
    this.died = new Promise((resolve) => {
      this.#resolveDeath = () => resolve("dead");
    });
    const schedules = this.#mortal(inner.schedules, { apply: (batch) => this.#apply(batch) });
    const registerWorker: Store["registerWorker"] = async (...args) => {
      this.#fence = await inner.registerWorker(...args);
      return this.#fence;
    };
    this.store = this.#mortal(inner, { schedules, registerWorker });
  }

  /** Frees the runs of the dead process, as happens when its lease has expired. */
  async expireLease(): Promise<void> {
    if (this.#fence !== null) await this.#inner.deregisterWorker(this.#fence);
  }

  async #apply(batch: Parameters<Store["schedules"]["apply"]>[0]) {
    this.changes += 1;
    const fault = this.#fault;
    if (fault?.change !== this.changes) return this.#inner.schedules.apply(batch);
    if (fault.when === "after") await this.#inner.schedules.apply(batch);
    if (fault.fate === "error") throw new Error("The connection was lost.");
    this.#isDead = true;
    this.#resolveDeath();
    return never();
  }

  #mortal<T extends object>(target: T, own: Partial<T>): T {
    return new Proxy(target, {
      get: (_, name) => {
        const owner = name in own ? own : target;
        const value: unknown = Reflect.get(owner, name);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (this.#isDead) return name === "watch" ? () => {} : never();
          const answer: unknown = Reflect.apply(value, owner, args);
          if (!(answer instanceof Promise)) return answer;
          return answer.then((result) => (this.#isDead ? never() : result));
        };
      },
    });
  }
}
