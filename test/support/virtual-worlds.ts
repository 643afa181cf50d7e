/** Pawl with virtual time: one worker that runs everything due, or a world of clients and workers that can be killed. */

import {
  type AnyWorkflow,
  type Logger,
  Pawl,
  type RunHandle,
  type Worker,
  type WorkerOptions,
  type WorkflowDefinition,
} from "pawl";
import { type TestPawl, testPawl, VirtualClock } from "pawl/testing";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import type { Fence, Store, StoreTransaction } from "../../src/store/contract/store.js";
import { type AnyStoreKind, chosenStore, openStore, type TestDatabase, testDatabase } from "./databases.js";

export type Workflows = readonly AnyWorkflow[];

export const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Pawl on a virtual clock, with one worker for these workflows; closed when the test ends. */
export async function start(...workflows: Workflows): Promise<TestPawl> {
  return startOn((await databaseOfTest()).url, workflows);
}

/** Always in memory: for tests of what happens between two commits that take no time at all. */
export const startInMemory = (...workflows: Workflows): Promise<TestPawl> => startOn("memory:", workflows);

async function startOn(store: string, workflows: Workflows): Promise<TestPawl> {
  const t = await testPawl({ workflows, logger: silent, store });
  onTestFinished(() => t.close());
  return t;
}

/** In memory, unless the tests are run for one store. */
async function databaseOfTest(): Promise<{ readonly kind: AnyStoreKind; readonly url: string }> {
  if (chosenStore === null) return { kind: "memory", url: "memory:" };
  const { url, drop } = await testDatabase(chosenStore);
  onTestFinished(drop);
  return { kind: chosenStore, url };
}

/** Starts one run, takes it to its end and returns its output. */
export async function outputOf<I, O>(
  definition: WorkflowDefinition<I, O>,
  input: I,
  others: Workflows = [],
): Promise<O> {
  const t = await start(definition, ...others);
  const run = (await t.pawl.start(definition as WorkflowDefinition<any, O>, input)) as RunHandle<I, O>;
  await t.speedrun(run);
  return run.result({ timeout: "100s" });
}

/** A worker that can be killed: from then on nothing it says is heard, and it hears nothing. */
export interface MortalWorker {
  readonly worker: Worker;
  readonly pawl: Pawl;
  /** Runs everything that is due; the instant at which more becomes due. */
  settle(): Promise<number | null>;
  /** Stands still: nothing more is heard of it, but its lease goes on. */
  freeze(): void;
  /** Dies, and its lease runs out. */
  kill(): Promise<void>;
}

export interface World {
  readonly store: Store;
  readonly clock: VirtualClock;
  /** A client in a process without any worker. */
  readonly pawl: Pawl;
  worker(workflows: Workflows, options?: Partial<WorkerOptions>, logger?: Logger): Promise<MortalWorker>;
  /**
   * Resolves when no live worker has anything left to do. The workers claim runs by themselves, so after `settle()` of one of
   * them another may still execute a run.
   */
  settleAll(): Promise<void>;
}

/** One database, a virtual clock, a client, and as many workers as the test wants. */
export async function world(kind: AnyStoreKind = "memory", url = "memory:", logger: Logger = silent): Promise<World> {
  const clock = new VirtualClock();
  const database = kind === "memory" ? await databaseOfTest() : { kind, url };
  const store = await openStore(database.kind, database.url, { clock: clock.read });
  await store.migrate();
  const pawl = new Pawl(store, logger);
  const workers: Worker[] = [];
  let claimedCount = 0;
  const onClaimed = (count: number) => {
    claimedCount += count;
  };
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.stop()));
    await pawl.close();
  });
  // What one worker has done may give work to another that was idle before, so the rounds end with one in which none claimed.
  const settleAll = async () => {
    for (let before = -1; before !== claimedCount; ) {
      before = claimedCount;
      for (const worker of [...workers]) await worker.runUntilIdle();
    }
  };
  return {
    store,
    clock,
    pawl,
    settleAll,
    worker: async (workflows, options = {}, workerLogger = logger) => {
      const mortal = new MortalStore(store, onClaimed);
      const own = new Pawl(mortal.store, workerLogger);
      const worker = own.worker({
        workflows,
        concurrency: 100,
        poll: Number.POSITIVE_INFINITY,
        grace: 100,
        replayGrace: 100,
        ...options,
      });
      workers.push(worker);
      await worker.start();
      return {
        worker,
        pawl: own,
        settle: () => worker.runUntilIdle(),
        freeze: () => mortal.freeze(),
        kill: async () => {
          workers.splice(workers.indexOf(worker), 1);
          await mortal.kill();
        },
      };
    },
  };
}

class MortalStore {
  readonly store: Store;
  readonly #inner: Store;
  readonly #onClaimed: (count: number) => void;
  #fence: Fence | null = null;
  #dead = false;

  constructor(inner: Store, onClaimed: (count: number) => void) {
    this.#inner = inner;
    this.#onClaimed = onClaimed;
    this.store = new Proxy(inner, { get: (target, name) => this.#member(target, name) });
  }

  #member(inner: object, name: string | symbol): unknown {
    const value = Reflect.get(inner, name) as unknown;
    if (name === "limits" || name === "gatherings")
      return new Proxy(value as object, { get: (target, member) => this.#member(target, member) });
    if (typeof value !== "function") return value;
    return (...args: unknown[]) => {
      if (this.#dead) return name === "watch" ? () => {} : new Promise(() => {});
      const result = Reflect.apply(value, inner, args) as unknown;
      if (!(result instanceof Promise)) return result;
      return result.then((answer) => {
        if (name === "registerWorker") this.#fence = answer as Fence;
        if (name === "claim" || name === "admit")
          this.#onClaimed((answer as { tasks?: readonly unknown[] }).tasks?.length ?? 0);
        if (this.#dead) return new Promise(() => {});
        return name === "beginTransaction" ? this.#mortal(answer as StoreTransaction) : answer;
      });
    };
  }

  /** What a dead process had open is rolled back. */
  #mortal(transaction: StoreTransaction): StoreTransaction {
    return {
      handle: transaction.handle,
      rollback: (options) => transaction.rollback(options),
      commit: async (batch) => {
        if (!this.#dead) return transaction.commit(batch);
        await transaction.rollback();
        return new Promise(() => {});
      },
    };
  }

  freeze(): void {
    this.#dead = true;
  }

  async kill(): Promise<void> {
    this.freeze();
    if (this.#fence !== null) await this.#inner.deregisterWorker(this.#fence);
  }
}

/**
 * One database for all tests of the current `describe`: to make one takes longer than most of these tests. They keep out
 * of each other's way by the names of their classes and heroes. (In memory each world is a store of its own.)
 */
export function databaseFor(kind: AnyStoreKind): { url(): string; world(): Promise<World> } {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());
  return { url: () => database.url, world: () => world(kind, database.url) };
}

/** From now on these workers run whatever becomes due, each beside the others, until the test ends. */
export function keepWorking(...workers: readonly MortalWorker[]): void {
  let over = false;
  onTestFinished(() => {
    over = true;
  });
  for (const worker of workers) {
    void (async () => {
      while (!over) {
        await worker.settle();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })().catch(() => {});
  }
}
