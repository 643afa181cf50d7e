/** A store beside the memory store, on one virtual clock: the same is done to both, then both are read and compared. */

import type { Batch, Fence, Mail, NewRun, Route, Store, TaskRecord } from "../../store/contract/store.js";
import { MemoryStore } from "../../store/memory/index.js";
import { byId, unique, workerInfo } from "./builders.js";
import type { Fixture } from "./fixture.js";

/** A worker that is enlisted in both stores; the epochs of the two may differ. */
export interface TwinWorker {
  readonly id: string;
  readonly fences: readonly [Fence, Fence];
}

/** A batch for both: what differs between the two is the fence, and the ids of inbox rows, which are given as places. */
export type TwinBatch = Omit<Batch, "fence"> & { readonly worker: TwinWorker | null };

export class Twin {
  readonly model: MemoryStore;
  readonly time: { now: number };
  readonly runs: NewRun[] = [];
  readonly workers: TwinWorker[] = [];
  readonly retired: TwinWorker[] = [];
  readonly #fixture: Fixture;
  readonly #store: Store;

  private constructor(fixture: Fixture, store: Store, time: { now: number }) {
    this.#fixture = fixture;
    this.#store = store;
    this.time = time;
    this.model = new MemoryStore({ clock: () => time.now });
  }

  static async open(fixture: Fixture): Promise<Twin> {
    const time = { now: 1_000_000 };
    return new Twin(fixture, await fixture.open({ clock: () => time.now }), time);
  }

  /** Does the same to both, and expects the same to come of it. */
  async same<T>(what: string, act: (store: Store, side: 0 | 1) => Promise<T>): Promise<T> {
    const expected = await act(this.model, 1);
    this.#fixture.expect(await act(this.#store, 0), what).toEqual(expected);
    return expected;
  }

  async enlist(id = unique("twin")): Promise<void> {
    const info = workerInfo({ id, leaseMs: 3_600_000 });
    const fences = [await this.#store.enlist(info), await this.model.enlist(info)] as const;
    this.workers.push({ id, fences });
  }

  async retire(worker: TwinWorker): Promise<void> {
    await this.same("retire", (store, side) => store.retire(worker.fences[side]));
    this.workers.splice(this.workers.indexOf(worker), 1);
    this.retired.push(worker);
  }

  async commit(given: TwinBatch, inTransaction: boolean): Promise<void> {
    const { worker, ...rest } = given;
    const result = await this.same("commit", async (store, side) => {
      const ids = rest.transitions.filter(({ drained }) => drained.length > 0).map(({ runId }) => runId);
      const inboxes = await store.inbox(ids);
      const transitions = rest.transitions.map((transition) => {
        const rows = inboxes.get(transition.runId) ?? [];
        return { ...transition, drained: transition.drained.flatMap((place) => rows[place]?.id ?? []) };
      });
      const batch: Batch = { ...rest, transitions, fence: worker === null ? null : worker.fences[side] };
      const target = inTransaction ? await store.begin() : store;
      const result = await target.commit(batch);
      if (result.kind !== "committed") return { kind: result.kind };
      const refused = result.refused.map(({ runId, reason, existing }) => ({ id: runId, reason, existing }));
      return { ...result, kept: [...result.kept].sort(), refused: byId(refused) };
    });
    if (result.kind !== "committed") return;
    const refused = new Set("refused" in result ? result.refused.map(({ id }) => id) : []);
    const known = new Set(this.runs.map(({ id }) => id));
    const born = [...given.transitions.flatMap(({ starts }) => starts), ...given.starts];
    this.runs.push(...born.filter(({ id }) => !refused.has(id) && !known.has(id)));
  }

  async send(mail: readonly Mail[]): Promise<void> {
    await this.same("send", async (store) => [...new Set((await store.send(mail)).undeliverable)].sort());
  }

  /** Takes all that is due: of less, the choice between timers and ready tasks would be the store's. */
  async claim(worker: TwinWorker, routes: readonly Route[]): Promise<void> {
    await this.same("claim", async (store, side) => {
      const limits = { limit: 10_000, limitPerRoute: 10_000 };
      const result = await store.claim({ fence: worker.fences[side], routes, ...limits });
      if (result.kind === "fenced") return result;
      const logs = await store.logs(result.tasks.filter(({ fresh }) => fresh).map(({ run }) => run.id));
      this.#fixture.expect([...logs.values()].flat(), "a fresh run has no log").toEqual([]);
      const tasks = result.tasks.map(({ run, deliveries, mail }) => ({ id: run.id, run, deliveries, mail }));
      return { at: result.at, tasks: byId(tasks) };
    });
  }

  async beat(worker: TwinWorker): Promise<void> {
    await this.same("beat", async (store, side) => {
      const { alive, mail } = await store.beat(worker.fences[side]);
      return { alive, mail: [...mail].sort() };
    });
  }

  /** Reads everything there is of the runs and workers. */
  async compare(): Promise<void> {
    const ids = this.runs.map(({ id }) => id);
    await this.same("runs", async (store) => byId(await store.runsById(ids)));
    await this.same("tasks", async (store) => byId((await store.tasks(ids)).map((task) => this.#comparable(task))));
    await this.same("logs", async (store) => filled(await store.logs(ids)));
    await this.same("inboxes", async (store) => {
      const inboxes = filled(await store.inbox(ids));
      return inboxes.map(([id, rows]) => [id, rows.map(({ id: _, ...row }) => row)]);
    });
    await this.same("cursors", async (store) => {
      const rows = await Promise.all(ids.map((id) => store.cursors(id)));
      return rows.map((cursors) => byId(cursors.map((row) => ({ ...row, id: row.node }))));
    });
    const workers = new Set([...this.workers, ...this.retired].map(({ id }) => id));
    await this.same("workers", async (store) => {
      const found = (await store.workers()).filter(({ id }) => workers.has(id));
      return byId(found.map(({ id, live, owned }) => ({ id, live, owned })));
    });
  }

  /** A task whose time has come may be called ready before it is claimed; an owned one may have any due time. */
  #comparable({ runId, state, dueAt, owner, deliveries, mail }: TaskRecord) {
    const isDue = state === "parked" && dueAt !== null && dueAt <= this.time.now;
    return {
      id: runId,
      state: isDue ? "ready" : state,
      dueAt: state === "owned" ? null : dueAt,
      owner,
      deliveries,
      mail,
    };
  }
}

/** Without the runs that have nothing, in the order of their ids. */
function filled<T>(rows: ReadonlyMap<string, readonly T[]>): [string, readonly T[]][] {
  return [...rows].filter(([, items]) => items.length > 0).sort(([a], [b]) => (a < b ? -1 : 1));
}
