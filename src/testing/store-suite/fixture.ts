/** The fixture of the tests of one topic: a database, an open store, and the operations that most tests start with. */
import { systemRuntime } from "../../runtime/system.js";
import type {
  Batch,
  ClaimedTask,
  ClaimResult,
  CommitResult,
  Fence,
  InboxRow,
  NewRun,
  Route,
  RunRecord,
  Store,
  StoredEvent,
  StoreOptions,
  TaskRecord,
  Transition,
  WorkerInfo,
} from "../../store/contract/store.js";
import { batch, delay, newRun, newRuns, workerInfo } from "./builders.js";
import type { StoreHarness, TestRunner } from "./harness.js";

type Committed = Extract<CommitResult, { kind: "committed" }>;
type ClaimedTasks = Extract<ClaimResult, { kind: "claimed" }>;

/** Only what hangs takes so long: a busy machine is no failure. */
const timeoutMs = 100_000;

export class Fixture {
  readonly harness: StoreHarness;
  readonly test: TestRunner["test"];
  readonly expect: TestRunner["expect"];
  #store: Store | undefined;
  #otherInstances: Store[] = [];

  constructor(harness: StoreHarness) {
    this.harness = harness;
    this.test = harness.runner.test;
    this.expect = harness.runner.expect;
  }

  /** How often a test repeats, of so many times without the harness's `effort`. */
  rounds(usual: number): number {
    return Math.max(1, Math.ceil(usual * (this.harness.effort ?? 1)));
  }

  /** The store under test; the tests of a topic share it, and its database. */
  get store(): Store {
    if (this.#store === undefined) throw new Error("The store is open only while tests run.");
    return this.#store;
  }

  async setUp(): Promise<void> {
    await this.harness.fresh();
    this.#store = await this.harness.open();
    await this.#store.migrate();
  }

  async closeOtherInstances(): Promise<void> {
    for (const store of this.#otherInstances.splice(0)) await store.close();
  }

  async tearDown(): Promise<void> {
    await this.closeOtherInstances();
    await this.#store?.close();
    this.#store = undefined;
  }

  /**
   * Opens an instance with other options. If the instances of the store share no data, the new instance has its own
   * data.
   */
  async open(options: StoreOptions): Promise<Store> {
    const store = await this.harness.open(options);
    this.#otherInstances.push(store);
    await store.migrate();
    return store;
  }

  /** Opens an instance on the same data, or returns the same instance if the store cannot share data. */
  async openAnother(): Promise<Store> {
    return this.harness.sharesAcrossInstances ? this.open({}) : this.store;
  }

  async registerWorker(overrides: Partial<WorkerInfo> = {}, store: Store = this.store): Promise<Fence> {
    return store.registerWorker(workerInfo(overrides));
  }

  /** Commits a batch that must be accepted. */
  async commit(batchToCommit: Batch, store: Store = this.store): Promise<Committed> {
    const result = await store.commit(batchToCommit);
    this.expect(result, "the batch is committed").toMatchObject({ kind: "committed" });
    return result as Committed;
  }

  /** Commits one transition that must be accepted. */
  async commitTransition(fence: Fence | null, transition: Transition, store: Store = this.store): Promise<Committed> {
    return this.commit(batch(fence, [transition]), store);
  }

  async start(overrides: Partial<NewRun> = {}, store: Store = this.store): Promise<NewRun> {
    const run = newRun(overrides);
    const { refused } = await this.commit(batch(null, [], [run]), store);
    this.expect(refused, "nothing is refused").toEqual([]);
    return run;
  }

  async startAll(runs: readonly NewRun[], fence: Fence | null = null, store: Store = this.store): Promise<void> {
    const { refused } = await this.commit(batch(fence, [], runs), store);
    this.expect(refused, "nothing is refused").toEqual([]);
  }

  /** Starts a run that the worker owns from its creation. */
  async startOwned(fence: Fence, overrides: Partial<NewRun> = {}, store: Store = this.store): Promise<NewRun> {
    const run = newRun({ ...overrides, due: { kind: "owned" } });
    await this.startAll([run], fence, store);
    return run;
  }

  async startOwnedRuns(howMany: number, fence: Fence): Promise<NewRun[]> {
    const runs = newRuns(howMany, { due: { kind: "owned" } });
    await this.startAll(runs, fence);
    return runs;
  }

  async claim(
    fence: Fence,
    routes: readonly Route[],
    limits: { limit?: number; limitPerRoute?: number } = {},
    store: Store = this.store,
  ): Promise<ClaimedTasks> {
    const { limit = 100, limitPerRoute = limit } = limits;
    const result = await store.claim({ fence, routes, limit, limitPerRoute });
    this.expect(result, "the worker may claim").toMatchObject({ kind: "claimed" });
    return result as ClaimedTasks;
  }

  /** Claims a task, and expects exactly one. */
  async claimOne(fence: Fence, routes: readonly Route[], store: Store = this.store): Promise<ClaimedTask> {
    const { tasks } = await this.claim(fence, routes, {}, store);
    this.expect(tasks, "one task is due").toHaveLength(1);
    return tasks[0] as ClaimedTask;
  }

  async run(id: string, store: Store = this.store): Promise<RunRecord> {
    const run = await store.run(id);
    if (run === null) throw new Error(`Run ${id} does not exist.`);
    return run;
  }

  async task(runId: string, store: Store = this.store): Promise<TaskRecord | undefined> {
    return (await store.tasks([runId]))[0];
  }

  /** Returns the tasks of these runs, in the order of the runs' ids, so that they can be compared. */
  async tasks(...runs: readonly { readonly id: string }[]): Promise<readonly TaskRecord[]> {
    const tasks = await this.store.tasks(runs.map(({ id }) => id));
    return [...tasks].sort((a, b) => (a.runId < b.runId ? -1 : 1));
  }

  async log(runId: string, store: Store = this.store): Promise<readonly StoredEvent[]> {
    return store.log(runId, { after: 0, limit: 1_000_000 });
  }

  async inbox(runId: string, store: Store = this.store): Promise<readonly InboxRow[]> {
    return (await store.inbox([runId])).get(runId) ?? [];
  }

  /** Waits until the condition is true, and throws if it stays false. */
  async waitUntil(description: string, isTrue: () => Promise<boolean> | boolean): Promise<void> {
    const deadline = systemRuntime.monotonic() + timeoutMs;
    while (!(await isTrue())) {
      if (systemRuntime.monotonic() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain until ${description}.`);
      await delay(10);
    }
  }
}
