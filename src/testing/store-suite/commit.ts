/** Commits: a batch is one transaction; how it changes a run, its task, its cursors and the runs that it releases. */
import type { NewRun, Transition } from "../../store/contract/store.js";
import {
  batch,
  delay,
  event,
  events,
  eventTypes,
  finish,
  newId,
  newMessage,
  newRun,
  park,
  routesOf,
  transition,
} from "./builders.js";
import type { Fixture } from "./fixture.js";

/** The last instant that a Date can represent, in epoch milliseconds. */
const endOfTime = 8.64e15;

export function commitTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  test("a batch moves many runs at once, all with the same timestamp", async () => {
    const worker = await fixture.registerWorker();
    const [stays, parks, ends] = (await fixture.startOwnedRuns(3, worker)) as [NewRun, NewRun, NewRun];
    const started = newRun();
    const { at, notParked, refused } = await fixture.commit(
      batch(
        worker,
        [
          transition(ends.id, { events: [event("end")], next: finish("completed", { output: "1" }) }),
          transition(stays.id, { events: [event("go")] }),
          transition(parks.id, { events: [event("wait")], next: park("waiting", { waiting: "w", wakeInMs: 60_000 }) }),
        ],
        [started],
      ),
    );
    expect([notParked, refused]).toEqual([[], []]);
    expect(await fixture.run(stays.id)).toMatchObject({ status: "running" });
    expect(await fixture.run(parks.id)).toMatchObject({ status: "waiting", waiting: "w" });
    expect(await fixture.run(ends.id)).toMatchObject({ status: "completed", output: "1", finishedAt: at });
    expect(await fixture.run(started.id)).toMatchObject({ status: "pending", createdAt: at });
    for (const { id } of [stays, parks, ends]) expect(await fixture.log(id)).toMatchObject([{ seq: 1, at }]);
  });

  test("an empty batch is committed", async () => {
    const worker = await fixture.registerWorker();
    await fixture.commit(batch(null, []));
    await fixture.commit(batch(worker, []));
  });

  test("keep leaves the run and its task as they are", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const before = [await fixture.run(run.id), await fixture.task(run.id)];
    await fixture.commitTransition(worker, transition(run.id, { events: events(2) }));
    expect([await fixture.run(run.id), await fixture.task(run.id)]).toEqual(before);
  });

  test("park releases the run: it has no owner and no deliveries, and its row has the new columns", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const { at } = await fixture.commitTransition(
      worker,
      transition(run.id, {
        events: [event("wait")],
        next: park("waiting", { waiting: '["signal"]', startedAt: "now" }),
      }),
    );
    expect(await fixture.run(run.id)).toMatchObject({
      status: "waiting",
      waiting: '["signal"]',
      startedAt: at,
      finishedAt: null,
    });
    expect(await fixture.task(run.id)).toEqual({
      runId: run.id,
      route: run.workflow,
      state: "parked",
      dueAt: null,
      owner: null,
      epoch: null,
      deliveries: 0,
      pendingMessages: 0,
    });
  });

  test("a parked run is due at the earlier of wakeAt and wakeInMs", async () => {
    const worker = await fixture.registerWorker();
    const soon = (await fixture.store.now()) + 3_600_000;
    const cases = [
      { wakeAt: soon, wakeInMs: null, due: () => soon },
      { wakeAt: null, wakeInMs: 5_000_000, due: (at: number) => at + 5_000_000 },
      { wakeAt: soon, wakeInMs: 90_000_000, due: () => soon },
      { wakeAt: soon, wakeInMs: 60_000, due: (at: number) => at + 60_000 },
      { wakeAt: soon + 60 * 86_400_000, wakeInMs: null, due: () => soon + 60 * 86_400_000 },
      { wakeAt: endOfTime, wakeInMs: null, due: () => endOfTime },
    ];
    for (const { wakeAt, wakeInMs, due } of cases) {
      const run = await fixture.startOwned(worker);
      const next = park("waiting", { wakeAt, wakeInMs });
      const { at } = await fixture.commitTransition(worker, transition(run.id, { events: [event("sleep")], next }));
      expect(await fixture.task(run.id)).toMatchObject({ state: "parked", dueAt: due(at), owner: null });
    }
  });

  test("a run parked for no time, or until an instant that has passed, is ready", async () => {
    const worker = await fixture.registerWorker();
    const now = await fixture.store.now();
    for (const wake of [{ wakeInMs: 0 }, { wakeAt: now - 1 }, { wakeAt: now + 3_600_000, wakeInMs: 0 }]) {
      const run = await fixture.startOwned(worker);
      await fixture.commitTransition(
        worker,
        transition(run.id, { events: [event("yield")], next: park("pending", wake) }),
      );
      expect(await fixture.task(run.id)).toMatchObject({ state: "ready", owner: null });
      expect(await fixture.claimOne(worker, routesOf(run))).toMatchObject({ deliveries: 1, run: { id: run.id } });
    }
  });

  test("a park overwrites the one before it", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const first = park("waiting", { waiting: "first", wakeInMs: 0 });
    await fixture.commitTransition(worker, transition(run.id, { events: [event("wait")], next: first }));
    await fixture.claimOne(worker, routesOf(run));
    await fixture.commitTransition(
      worker,
      transition(run.id, { afterSeq: 1, events: [event("pause")], next: park("paused") }),
    );
    expect(await fixture.run(run.id)).toMatchObject({ status: "paused", waiting: null });
    expect(await fixture.task(run.id)).toMatchObject({ state: "parked", dueAt: null });
  });

  test("finish ends the run: its task and its inbox are deleted, its log stays", async () => {
    const worker = await fixture.registerWorker();
    for (const status of ["completed", "failed", "canceled"] as const) {
      const run = await fixture.startOwned(worker);
      await fixture.store.send([newMessage(run.id, "read")]);
      await fixture.commitTransition(
        worker,
        transition(run.id, { events: [event("wait")], cursors: [{ node: "n", cursor: "1" }] }),
      );
      const next = finish(status, { output: "out", error: "err" });
      const drainedInboxIds = (await fixture.inbox(run.id)).map(({ id }) => id);
      const ended = transition(run.id, { afterSeq: 1, events: [event("end")], drainedInboxIds, next });
      const { at } = await fixture.commitTransition(worker, ended);
      expect(await fixture.run(run.id)).toMatchObject({ status, output: "out", error: "err", finishedAt: at });
      expect(await fixture.store.tasks([run.id])).toEqual([]);
      expect(await fixture.inbox(run.id)).toEqual([]);
      expect(eventTypes(await fixture.log(run.id))).toEqual(["wait", "end"]);
    }
  });

  test("when a run ends, the column waiting holds the number of events in its log", async () => {
    const run = await fixture.start();
    await fixture.commitTransition(
      null,
      transition(run.id, { events: [event("w")], next: park("waiting", { waiting: "signal" }) }),
    );
    await fixture.commitTransition(
      null,
      transition(run.id, { afterSeq: 1, events: [event("e")], next: finish("canceled") }),
    );
    expect(await fixture.run(run.id)).toMatchObject({ status: "canceled", waiting: "2", output: null, error: null });
  });

  test("startedAt is written once: now, or the instant that is given, or not at all", async () => {
    const worker = await fixture.registerWorker();
    const parkAndReclaim = async (run: NewRun, afterSeq: number, startedAt: number | "now" | null) => {
      const next = park("waiting", { startedAt, wakeInMs: 0 });
      const { at } = await fixture.commitTransition(
        worker,
        transition(run.id, { afterSeq, events: [event("w")], next }),
      );
      await fixture.claimOne(worker, routesOf(run));
      return at;
    };
    const run = await fixture.startOwned(worker);
    await parkAndReclaim(run, 0, null);
    expect(await fixture.run(run.id)).toMatchObject({ startedAt: null });
    const first = await parkAndReclaim(run, 1, "now");
    expect(await fixture.run(run.id)).toMatchObject({ startedAt: first });
    await parkAndReclaim(run, 2, "now");
    await parkAndReclaim(run, 3, 12_345);
    await parkAndReclaim(run, 4, null);
    expect(await fixture.run(run.id)).toMatchObject({ startedAt: first });
    const next = finish("completed", { startedAt: "now" });
    await fixture.commitTransition(worker, transition(run.id, { afterSeq: 5, events: [event("e")], next }));
    expect(await fixture.run(run.id)).toMatchObject({ startedAt: first });

    const withInstant = await fixture.startOwned(worker);
    await parkAndReclaim(withInstant, 0, 12_345);
    expect(await fixture.run(withInstant.id)).toMatchObject({ startedAt: 12_345 });

    const neverParked = await fixture.startOwned(worker);
    const ended = transition(neverParked.id, { events: [event("e")], next: finish("completed", { startedAt: "now" }) });
    const { at } = await fixture.commitTransition(worker, ended);
    expect(await fixture.run(neverParked.id)).toMatchObject({ startedAt: at, finishedAt: at });

    const never = await fixture.start();
    await fixture.commitTransition(null, transition(never.id, { events: [event("e")], next: finish("canceled") }));
    expect(await fixture.run(never.id)).toMatchObject({ startedAt: null });
  });

  test("cursors are overwritten column by column", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const write = (cursors: Transition["cursors"]) => fixture.commitTransition(worker, transition(run.id, { cursors }));
    await write([
      { node: "a", cursor: "1", progress: "10" },
      { node: "b", cursor: "x" },
    ]);
    await write([{ node: "a", cursor: "2" }]);
    const { at } = await write([
      { node: "b", progress: "50" },
      { node: "A", progress: null, cursor: null },
    ]);
    const rows = [...(await fixture.store.cursors(run.id))].sort((a, b) => (a.node < b.node ? -1 : 1));
    expect(rows.map(({ node, cursor, progress }) => [node, cursor, progress])).toEqual([
      ["A", null, null],
      ["a", "2", "10"],
      ["b", "x", "50"],
    ]);
    expect(rows[2]?.at).toBe(at);
    await write([{ node: "b", cursor: null }]);
    const b = (await fixture.store.cursors(run.id)).find(({ node }) => node === "b");
    expect(b).toMatchObject({ cursor: null, progress: "50" });
    expect(await fixture.store.cursors(newId())).toEqual([]);
    expect(await fixture.log(run.id)).toEqual([]);
  });

  test("held runs are released; runs that are no longer parked are left alone", async () => {
    const worker = await fixture.registerWorker();
    const parent = await fixture.startOwned(worker);
    const held = await fixture.start({ due: { kind: "held" } });
    const busy = await fixture.startOwned(worker);
    const ended = await fixture.start();
    await fixture.commitTransition(null, transition(ended.id, { events: [event("end")], next: finish() }));
    const ready = await fixture.start();
    const dueAt = (await fixture.task(ready.id))?.dueAt;
    await delay(5);
    const releasedChildIds = [held.id, busy.id, ended.id, ready.id, newId()];
    const { at } = await fixture.commitTransition(
      worker,
      transition(parent.id, { events: [event("go")], releasedChildIds }),
    );
    expect(await fixture.task(held.id)).toMatchObject({ state: "ready", dueAt: at });
    expect(await fixture.task(busy.id)).toMatchObject({ state: "owned", deliveries: 1 });
    expect(await fixture.task(ready.id)).toMatchObject({ state: "ready", dueAt });
    expect(await fixture.store.tasks([ended.id])).toEqual([]);
    expect((await fixture.claimOne(worker, routesOf(held))).run.id).toBe(held.id);
  });

  test("five hundred runs are moved in one batch", async () => {
    const worker = await fixture.registerWorker();
    const runs = await fixture.startOwnedRuns(500, worker);
    const ids = runs.map(({ id }) => id);
    await fixture.commit(
      batch(
        worker,
        ids.map((id, index) => transition(id, { events: events(1 + (index % 2)) })),
      ),
    );
    await fixture.commit(
      batch(
        worker,
        ids.map((id, index) =>
          transition(id, {
            afterSeq: 1 + (index % 2),
            events: [event("last")],
            next:
              index % 3 === 0
                ? finish("completed", { output: id })
                : park("waiting", { waiting: id, wakeInMs: index + 60_000 }),
            cursors: index % 5 === 0 ? [{ node: "n", cursor: id }] : [],
          }),
        ),
      ),
    );
    const logs = await fixture.store.logs(ids);
    for (const [index, id] of ids.entries()) expect(logs.get(id)).toHaveLength(2 + (index % 2));
    const records = await fixture.store.runsById(ids);
    expect(records.filter(({ id, output, status }) => status === "completed" && output === id)).toHaveLength(167);
    expect(records.filter(({ id, waiting, status }) => status === "waiting" && waiting === id)).toHaveLength(333);
    const tasks = await fixture.store.tasks(ids);
    const at = (logs.get(ids[1] as string) ?? []).at(-1)?.at as number;
    expect(tasks.filter(({ runId, dueAt }) => dueAt === at + ids.indexOf(runId) + 60_000)).toHaveLength(333);
  });
}
