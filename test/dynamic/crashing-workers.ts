/**
 * Workers that die at commits chosen by a seed, before or after the commit is made, and are replaced by others: for
 * graphs whose work is spread over several workers. The number of deaths is limited, so that everything must finish in
 * the end.
 */
import { type JobDefinition, Pawl, type Worker } from "pawl";
import type { Batch, Fence, Store } from "../../src/store/contract/store.js";
import { silent } from "../support/virtual-worlds.js";

interface Doomed {
  readonly worker: Worker;
  readonly idle: { promise: Promise<number | null> | null };
  readonly death: Promise<Doomed>;
  bury(): Promise<void>;
}

export class CrashingWorkers {
  /** The number of workers that have died. */
  deaths = 0;
  readonly #store: Store;
  readonly #jobs: readonly JobDefinition[];
  readonly #random: () => number;
  #doomed: number;
  readonly #alive = new Set<Doomed>();

  constructor(store: Store, jobs: readonly JobDefinition[], random: () => number, deaths: number) {
    this.#store = store;
    this.#jobs = jobs;
    this.#random = random;
    this.#doomed = deaths;
  }

  async start(count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) this.#alive.add(await this.#newWorker());
  }

  /** Runs everything that is due, through all deaths, and returns when more becomes due, or null. */
  async settle(): Promise<number | null> {
    for (;;) {
      const alive = [...this.#alive];
      for (const one of alive) one.idle.promise ??= one.worker.runUntilIdle();
      const idle = Promise.all(alive.map(({ idle }) => idle.promise as Promise<number | null>));
      const came = await Promise.race([idle, ...alive.map(({ death }) => death)]);
      if (Array.isArray(came)) {
        for (const one of alive) one.idle.promise = null;
        const dues = came.filter((due) => due !== null);
        return dues.length === 0 ? null : Math.min(...dues);
      }
      this.#alive.delete(came);
      this.deaths += 1;
      await came.bury();
      this.#alive.add(await this.#newWorker());
      // Other workers may have become idle before the work of the dead one was free again.
      for (const one of this.#alive)
        if (one.idle.promise !== null) one.idle.promise = one.idle.promise.then(() => one.worker.runUntilIdle());
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#alive].map(({ worker }) => worker.stop()));
  }

  async #newWorker(): Promise<Doomed> {
    const life = this.#doomed > 0 ? 1 + Math.floor(this.#random() * 12) : Number.POSITIVE_INFINITY;
    this.#doomed -= 1;
    const mortal = new MortalStore(this.#store, life, this.#random() < 0.5);
    const worker = new Pawl(mortal.store, silent).worker({
      workflows: [],
      jobs: this.#jobs,
      concurrency: 1 + Math.floor(this.#random() * 8),
      poll: Number.POSITIVE_INFINITY,
      grace: 100,
    });
    await worker.start();
    const doomed: Doomed = {
      worker,
      idle: { promise: null },
      death: mortal.death.then(() => doomed),
      bury: () => mortal.bury(),
    };
    return doomed;
  }
}

/** From the chosen commit on, nothing that the worker writes arrives, and it gets no answers. */
class MortalStore {
  readonly store: Store;
  readonly death: Promise<void>;
  readonly #inner: Store;
  readonly #commitFirst: boolean;
  #left: number;
  #dead = false;
  #fence: Fence | null = null;
  #die: () => void = () => {};

  constructor(inner: Store, life: number, commitFirst: boolean) {
    this.#inner = inner;
    this.#left = life;
    this.#commitFirst = commitFirst;
    this.death = new Promise((resolve) => {
      this.#die = resolve;
    });
    this.store = new Proxy(inner, { get: (store, name) => this.#member(store, name) });
  }

  #member(inner: Store, name: string | symbol): unknown {
    const value = Reflect.get(inner, name) as unknown;
    if (typeof value !== "function") return value;
    return (...args: unknown[]) => {
      if (this.#dead) return name === "watch" ? () => {} : new Promise(() => {});
      if (name === "commit") return this.#commit(args[0] as Batch);
      const result = Reflect.apply(value, inner, args) as unknown;
      if (!(result instanceof Promise)) return result;
      return result.then((answer) => {
        if (name === "registerWorker") this.#fence = answer as Fence;
        return this.#dead ? new Promise(() => {}) : answer;
      });
    };
  }

  async #commit(batch: Batch): Promise<unknown> {
    if (batch.fence !== null) this.#left -= 1;
    if (this.#left > 0) {
      const answer = await this.#inner.commit(batch);
      return this.#dead ? new Promise(() => {}) : answer;
    }
    this.#dead = true;
    if (this.#commitFirst) await this.#inner.commit(batch);
    this.#die();
    return new Promise(() => {});
  }

  /** Does what the reaper does once the lease has expired. */
  async bury(): Promise<void> {
    if (this.#fence !== null) await this.#inner.deregisterWorker(this.#fence);
  }
}
