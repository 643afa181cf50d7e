/** Runs the same operations on a store and on the memory store, with one virtual clock, and compares what both contain. */

import type {
  Batch,
  Fence,
  Message,
  NewRun,
  Route,
  Store,
  TaskRecord,
  WorkerLoad,
} from "../../store/contract/store.js";
import { MemoryStore } from "../../store/memory/index.js";
import { byId, uniqueName, workerInfo } from "./builders.js";
import type { Fixture } from "./fixture.js";

/** A worker that is registered in both stores; the epochs of the two may differ. */
export interface ComparedWorker {
  readonly id: string;
  readonly fences: readonly [Fence, Fence];
}

/**
 * A batch for both stores. Fences and ids of inbox rows differ between the stores, so this batch names the worker
 * instead of its fence, and positions in the inbox instead of ids.
 */
export type ComparedBatch = Omit<Batch, "fence"> & { readonly worker: ComparedWorker | null };

export class ComparedStores {
  readonly model: MemoryStore;
  readonly time: { now: number };
  readonly runs: NewRun[] = [];
  readonly workers: ComparedWorker[] = [];
  readonly deregisteredWorkers: ComparedWorker[] = [];
  readonly #fixture: Fixture;
  readonly #store: Store;

  private constructor(fixture: Fixture, store: Store, time: { now: number }) {
    this.#fixture = fixture;
    this.#store = store;
    this.time = time;
    this.model = new MemoryStore({ clock: () => time.now });
  }

  static async open(fixture: Fixture): Promise<ComparedStores> {
    const time = { now: 1_000_000 };
    return new ComparedStores(fixture, await fixture.open({ clock: () => time.now }), time);
  }

  /** Performs the operation on both stores, and expects the same result. */
  async expectSame<T>(description: string, act: (store: Store, side: 0 | 1) => Promise<T>): Promise<T> {
    const expected = await act(this.model, 1);
    this.#fixture.expect(await act(this.#store, 0), description).toEqual(expected);
    return expected;
  }

  async registerWorker(id = uniqueName("compared")): Promise<void> {
    const info = workerInfo({ id, leaseMs: 3_600_000 });
    const fences = [await this.#store.registerWorker(info), await this.model.registerWorker(info)] as const;
    this.workers.push({ id, fences });
  }

  async deregisterWorker(worker: ComparedWorker): Promise<void> {
    await this.expectSame("deregisterWorker", (store, side) => store.deregisterWorker(worker.fences[side]));
    this.workers.splice(this.workers.indexOf(worker), 1);
    this.deregisteredWorkers.push(worker);
  }

  async commit(comparedBatch: ComparedBatch, inTransaction: boolean): Promise<void> {
    const { worker, ...rest } = comparedBatch;
    const result = await this.expectSame("commit", async (store, side) => {
      const ids = rest.transitions
        .filter(({ drainedInboxIds }) => drainedInboxIds.length > 0)
        .map(({ runId }) => runId);
      const inboxes = await store.inbox(ids);
      const transitions = rest.transitions.map((transition) => {
        const rows = inboxes.get(transition.runId) ?? [];
        return { ...transition, drainedInboxIds: transition.drainedInboxIds.flatMap((place) => rows[place]?.id ?? []) };
      });
      const batch: Batch = { ...rest, transitions, fence: worker === null ? null : worker.fences[side] };
      const target = inTransaction ? await store.beginTransaction() : store;
      const result = await target.commit(batch);
      if (result.kind !== "committed") return { kind: result.kind };
      const refused = result.refused.map(({ runId, reason, existing }) => ({ id: runId, reason, existing }));
      const [notParked, ownedWithMessages] = [[...result.notParked].sort(), [...result.ownedWithMessages].sort()];
      return { ...result, notParked, ownedWithMessages, refused: byId(refused) };
    });
    if (result.kind !== "committed") return;
    const refused = new Set("refused" in result ? result.refused.map(({ id }) => id) : []);
    const knownIds = new Set(this.runs.map(({ id }) => id));
    const startedRuns = [
      ...comparedBatch.transitions.flatMap(({ newChildren }) => newChildren),
      ...comparedBatch.starts,
    ];
    this.runs.push(...startedRuns.filter(({ id }) => !refused.has(id) && !knownIds.has(id)));
  }

  async send(messages: readonly Message[]): Promise<void> {
    await this.expectSame("send", async (store) => [...new Set((await store.send(messages)).undeliverable)].sort());
  }

  /**
   * Claims everything that is due, because with a smaller limit the two stores could choose differently between timers
   * and ready tasks.
   */
  async claim(worker: ComparedWorker, routes: readonly Route[]): Promise<void> {
    await this.expectSame("claim", async (store, side) => {
      const limits = { limit: 10_000, limitPerRoute: 10_000 };
      const result = await store.claim({ fence: worker.fences[side], routes, ...limits });
      if (result.kind === "fenced") return result;
      const logs = await store.logs(result.tasks.filter(({ isFresh }) => isFresh).map(({ run }) => run.id));
      this.#fixture.expect([...logs.values()].flat(), "a fresh run has no log").toEqual([]);
      const tasks = result.tasks.map(({ run, route, deliveries, pendingMessages }) => ({
        id: run.id,
        run,
        route,
        deliveries,
        pendingMessages,
      }));
      return { at: result.at, tasks: byId(tasks) };
    });
  }

  async heartbeat(worker: ComparedWorker, load?: WorkerLoad): Promise<void> {
    await this.expectSame("heartbeat", async (store, side) => {
      const { isAlive, ownedWithMessages } = await store.heartbeat(worker.fences[side], load);
      return { isAlive, ownedWithMessages: [...ownedWithMessages].sort() };
    });
  }

  /** Reads and compares everything about the runs and the workers. */
  async compare(): Promise<void> {
    const ids = this.runs.map(({ id }) => id);
    await this.expectSame("runs", async (store) => byId(await store.runsById(ids)));
    await this.expectSame("tasks", async (store) =>
      byId((await store.tasks(ids)).map((task) => this.#comparable(task))),
    );
    await this.expectSame("logs", async (store) => nonEmptyEntries(await store.logs(ids)));
    await this.expectSame("inboxes", async (store) => {
      const inboxes = nonEmptyEntries(await store.inbox(ids));
      return inboxes.map(([id, rows]) => [id, rows.map(({ id: _, ...row }) => row)]);
    });
    await this.expectSame("cursors", async (store) => {
      const rows = await Promise.all(ids.map((id) => store.cursors(id)));
      return rows.map((cursors) => byId(cursors.map((row) => ({ ...row, id: row.node }))));
    });
    const workers = new Set([...this.workers, ...this.deregisteredWorkers].map(({ id }) => id));
    await this.expectSame("workers", async (store) => {
      const records = (await store.workers()).filter(({ id }) => workers.has(id));
      return byId(records.map(({ id, live, executing, loopLagMs }) => ({ id, live, executing, loopLagMs })));
    });
  }

  /**
   * Removes the differences that are allowed: a store may report a due task as ready before it is claimed, and may
   * leave any due time on an owned task.
   */
  #comparable({ runId, state, dueAt, owner, deliveries, pendingMessages }: TaskRecord) {
    const isDue = state === "parked" && dueAt !== null && dueAt <= this.time.now;
    return {
      id: runId,
      state: isDue ? "ready" : state,
      dueAt: state === "owned" ? null : dueAt,
      owner,
      deliveries,
      pendingMessages,
    };
  }
}

/** Returns the entries with at least one row, in the order of their ids. */
function nonEmptyEntries<T>(rows: ReadonlyMap<string, readonly T[]>): [string, readonly T[]][] {
  return [...rows].filter(([, items]) => items.length > 0).sort(([a], [b]) => (a < b ? -1 : 1));
}
