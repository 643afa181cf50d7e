/**
 * Workers that die at commits chosen by a seed, before or after the commit is made, and are replaced by others: for
 * graphs whose work is spread over several workers. The number of deaths is limited, so that everything must finish in
 * the end.
 */
import { type JobDefinition, Pawl, type Worker } from "pawl";
import type { Batch, Fence, Store } from "../../src/store/contract/store.js";
import { silent } from "../support/virtual-worlds.js";

interface CrashingWorker {
  readonly worker: Worker;
  readonly idle: { promise: Promise<number | null> | null };
  readonly death: Promise<CrashingWorker>;
  deregister(): Promise<void>;
}

export class CrashingWorkers {
  /** The number of workers that have died. */
  deaths = 0;
  readonly #store: Store;
  readonly #jobs: readonly JobDefinition[];
  readonly #random: () => number;
  #remainingDeaths: number;
  readonly #alive = new Set<CrashingWorker>();

  constructor(store: Store, jobs: readonly JobDefinition[], random: () => number, deaths: number) {
    this.#store = store;
    this.#jobs = jobs;
    this.#random = random;
    this.#remainingDeaths = deaths;
  }

  async start(count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) this.#alive.add(await this.#newWorker());
  }

  /** Runs everything that is due, through all deaths, and returns when more becomes due, or null. */
  async settle(): Promise<number | null> {
    for (;;) {
      const alive = [...this.#alive];
      for (const member of alive) member.idle.promise ??= member.worker.runUntilIdle();
      const idle = Promise.all(alive.map(({ idle }) => idle.promise as Promise<number | null>));
      const idleOrDead = await Promise.race([idle, ...alive.map(({ death }) => death)]);
      if (Array.isArray(idleOrDead)) {
        for (const member of alive) member.idle.promise = null;
        const dueTimes = idleOrDead.filter((due) => due !== null);
        return dueTimes.length === 0 ? null : Math.min(...dueTimes);
      }
      this.#alive.delete(idleOrDead);
      this.deaths += 1;
      await idleOrDead.deregister();
      this.#alive.add(await this.#newWorker());
      // Other workers may have become idle before the work of the dead one was free again.
      for (const member of this.#alive)
        if (member.idle.promise !== null)
          member.idle.promise = member.idle.promise.then(() => member.worker.runUntilIdle());
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#alive].map(({ worker }) => worker.stop()));
  }

  async #newWorker(): Promise<CrashingWorker> {
    const commitsUntilDeath =
      this.#remainingDeaths > 0 ? 1 + Math.floor(this.#random() * 12) : Number.POSITIVE_INFINITY;
    this.#remainingDeaths -= 1;
    const crashingStore = new CrashingStore(this.#store, commitsUntilDeath, this.#random() < 0.5);
    const worker = new Pawl(crashingStore.store, silent).worker({
      workflows: [],
      jobs: this.#jobs,
      concurrency: 1 + Math.floor(this.#random() * 8),
      poll: Number.POSITIVE_INFINITY,
      grace: 100,
    });
    await worker.start();
    const crashingWorker: CrashingWorker = {
      worker,
      idle: { promise: null },
      death: crashingStore.death.then(() => crashingWorker),
      deregister: () => crashingStore.deregister(),
    };
    return crashingWorker;
  }
}

/** From the chosen commit on, nothing that the worker writes arrives, and it gets no answers. */
class CrashingStore {
  readonly store: Store;
  readonly death: Promise<void>;
  readonly #inner: Store;
  readonly #commitFirst: boolean;
  #commitsLeft: number;
  #dead = false;
  #fence: Fence | null = null;
  #die: () => void = () => {};

  constructor(inner: Store, commitsUntilDeath: number, commitFirst: boolean) {
    this.#inner = inner;
    this.#commitsLeft = commitsUntilDeath;
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
    if (batch.fence !== null) this.#commitsLeft -= 1;
    if (this.#commitsLeft > 0) {
      const answer = await this.#inner.commit(batch);
      return this.#dead ? new Promise(() => {}) : answer;
    }
    this.#dead = true;
    if (this.#commitFirst) await this.#inner.commit(batch);
    this.#die();
    return new Promise(() => {});
  }

  /** Does what the reaper does once the lease has expired. */
  async deregister(): Promise<void> {
    if (this.#fence !== null) await this.#inner.deregisterWorker(this.#fence);
  }
}
