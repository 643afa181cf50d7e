/** Refused commits: a stale fence, a log that has grown, a run that a client may not move. */
import type { Fence, NewRun, TaskRecord, Transition } from "../../store/contract/store.js";
import {
  batch,
  event,
  events,
  eventTypes,
  finish,
  newId,
  newMessage,
  newRun,
  newRuns,
  park,
  routesOf,
  transition,
} from "./builders.js";
import type { Fixture } from "./fixture.js";

export function guardTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  /** Returns a transition that does everything a transition can do, to check that a refused batch does none of it. */
  async function prepareFullTransition(runId: string, afterSeq: number, fence: Fence) {
    const recipient = await fixture.start({ due: { kind: "held" } });
    const held = await fixture.start({ due: { kind: "held" } });
    const child = newRun();
    const started = newRun();
    const inbox = await fixture.inbox(runId);
    const full: Transition = transition(runId, {
      afterSeq,
      events: events(2),
      next: park("paused", { waiting: "w" }),
      drainedInboxIds: inbox.map(({ id }) => id),
      newChildren: [child],
      messages: [newMessage(recipient.id, "x")],
      releasedChildIds: [held.id],
      cursors: [{ node: "n", cursor: "c" }],
    });
    const readState = async () => ({
      run: await fixture.store.run(runId),
      task: await fixture.task(runId),
      log: await fixture.log(runId),
      inbox: await fixture.inbox(runId),
      cursors: await fixture.store.cursors(runId),
      others: await fixture.tasks(recipient, held),
      pendingMessages: await fixture.inbox(recipient.id),
      createdRuns: await fixture.store.runsById([child.id, started.id]),
    });
    return { batch: batch(fence, [full], [started]), readState };
  }

  test("a client's park with keepsDueTime changes the row and the log of the run, but not when it is due", async () => {
    const [ready, planned, held] = await Promise.all([
      fixture.start(),
      fixture.start({ due: { kind: "in", ms: 3_600_000 } }),
      fixture.start({ due: { kind: "held" } }),
    ]);
    for (const run of [ready, planned, held]) {
      const { state, dueAt } = (await fixture.task(run.id)) as TaskRecord;
      const next = park("paused", { waiting: "w", keepsDueTime: true });
      const result = await fixture.store.commit(batch(null, [transition(run.id, { events: [event("paused")], next })]));
      expect(result).toMatchObject({ kind: "committed", notParked: [] });
      expect(await fixture.task(run.id)).toMatchObject({ state, dueAt });
      expect(await fixture.run(run.id)).toMatchObject({ status: "paused", waiting: "w", startedAt: null });
    }
    const worker = await fixture.registerWorker();
    const { tasks } = await fixture.claim(worker, routesOf(ready));
    expect(tasks).toMatchObject([{ run: { id: ready.id }, isFresh: false }]);
  });

  test("a run that has ended never changes again", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    await fixture.commitTransition(
      worker,
      transition(run.id, { events: [event("end")], next: finish("completed", { output: "1" }) }),
    );
    const end = await fixture.run(run.id);
    const again = transition(run.id, { afterSeq: 0, events: [event("end")], next: finish("failed") });
    expect(await fixture.store.commit(batch(worker, [again]))).toEqual({ kind: "conflict", runId: run.id });
    for (const afterSeq of [0, 1]) {
      const late = transition(run.id, { afterSeq, events: [event("late")], next: finish("canceled") });
      expect(await fixture.store.commit(batch(null, [late]))).toEqual({ kind: "conflict", runId: run.id });
    }
    expect(await fixture.run(run.id)).toEqual(end);
    expect(eventTypes(await fixture.log(run.id))).toEqual(["end"]);
  });

  test("a log that has grown is a conflict that names the run, and nothing is written", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    await fixture.store.send([newMessage(run.id, "unread")]);
    await fixture.commitTransition(worker, transition(run.id, { events: events(2) }));
    await fixture.commitTransition(worker, transition(run.id, { afterSeq: 2, events: events(3) }));
    for (const after of [0, 2]) {
      const { batch: stale, readState } = await prepareFullTransition(run.id, after, worker);
      const before = await readState();
      expect(await fixture.store.commit(stale)).toEqual({ kind: "conflict", runId: run.id });
      expect(await readState()).toEqual(before);
    }
  });

  test("one run in conflict prevents the whole batch, at any position in it", async () => {
    const worker = await fixture.registerWorker();
    const runs = await fixture.startOwnedRuns(5, worker);
    await fixture.commit(
      batch(
        worker,
        runs.map(({ id }) => transition(id, { events: [event("first")] })),
      ),
    );
    for (const [position, bad] of runs.entries()) {
      const transitions = runs.map(({ id }, index) =>
        transition(id, {
          afterSeq: index === position ? 0 : 1,
          events: [event("second")],
          next: index % 2 === 0 ? finish() : park(),
        }),
      );
      const result = await fixture.store.commit(batch(worker, transitions, [newRun({ workflow: bad.workflow })]));
      expect(result).toEqual({ kind: "conflict", runId: bad.id });
    }
    const logs = await fixture.store.logs(runs.map(({ id }) => id));
    for (const { id } of runs) expect(eventTypes(logs.get(id) ?? [])).toEqual(["first"]);
    const tasks = await fixture.store.tasks(runs.map(({ id }) => id));
    expect(tasks.filter(({ state }) => state === "owned")).toHaveLength(5);
    expect(await fixture.store.runs({ workflow: runs[0]?.workflow ?? "", limit: 10 })).toHaveLength(5);
  });

  test("a commit under a stale fence writes nothing", async () => {
    const info = { id: `fenced-${newId()}` };
    const stale = await fixture.registerWorker(info);
    const run = await fixture.startOwned(stale);
    await fixture.store.send([newMessage(run.id, "unread")]);
    const { batch: late, readState } = await prepareFullTransition(run.id, 0, stale);
    await fixture.registerWorker(info);
    const before = await readState();
    const invalidFences: Fence[] = [
      stale,
      { workerId: stale.workerId, epoch: stale.epoch + 5 },
      { workerId: newId(), epoch: 1 },
    ];
    for (const fence of invalidFences) {
      expect(await fixture.store.commit({ ...late, fence })).toEqual({ kind: "fenced" });
      expect(await fixture.store.commit(batch(fence, [], [newRun({ workflow: run.workflow })]))).toEqual({
        kind: "fenced",
      });
      expect(await fixture.store.commit(batch(fence, []))).toEqual({ kind: "fenced" });
    }
    expect(await readState()).toEqual(before);
    expect(await fixture.store.runs({ workflow: run.workflow, limit: 10 })).toHaveLength(1);
  });

  test("a client moves runs that no worker owns", async () => {
    const runs = newRuns(3);
    await fixture.startAll(runs);
    const [paused, canceled, woken] = runs as [NewRun, NewRun, NewRun];
    await fixture.commit(
      batch(null, [
        transition(woken.id, { events: events(2), next: park("pending", { wakeInMs: 0 }) }),
        transition(paused.id, { events: [event("pause")], next: park("paused") }),
        transition(canceled.id, { events: [event("cancel")], next: finish("canceled", { error: "why" }) }),
      ]),
    );
    expect(await fixture.run(paused.id)).toMatchObject({ status: "paused" });
    expect(await fixture.run(canceled.id)).toMatchObject({ status: "canceled", error: "why" });
    const worker = await fixture.registerWorker();
    expect((await fixture.claimOne(worker, routesOf(woken))).run.id).toBe(woken.id);
  });

  test("a client's commit conflicts if the run is owned, has messages, has a longer log, has ended or does not exist", async () => {
    const worker = await fixture.registerWorker();
    const owned = await fixture.startOwned(worker);
    const runWithMessages = await fixture.start({ due: { kind: "held" } });
    await fixture.store.send([newMessage(runWithMessages.id, "x")]);
    const moved = await fixture.start();
    await fixture.commitTransition(null, transition(moved.id, { events: [event("one")], next: park() }));
    const ended = await fixture.start();
    await fixture.commitTransition(null, transition(ended.id, { events: [event("end")], next: finish() }));
    const validRun = await fixture.start({ due: { kind: "held" } });
    const bad = [owned.id, runWithMessages.id, moved.id, ended.id, newId()];
    const before = await fixture.tasks(owned, runWithMessages, moved, validRun);
    for (const runId of bad) {
      const transitions = [validRun.id, runId].map((id) =>
        transition(id, { events: [event("x")], next: park("paused") }),
      );
      for (const ordered of [transitions, transitions.toReversed()]) {
        expect(await fixture.store.commit(batch(null, ordered))).toEqual({ kind: "conflict", runId });
      }
    }
    expect(await fixture.log(validRun.id)).toEqual([]);
    expect(await fixture.run(validRun.id)).toMatchObject({ status: "pending" });
    expect(await fixture.tasks(owned, runWithMessages, moved, validRun)).toEqual(before);
  });

  test("a client's commit that would leave a gap in a log, or start inside a packed row, conflicts", async () => {
    const run = await fixture.start();
    await fixture.commitTransition(null, transition(run.id, { events: events(3), next: park() }));
    for (const afterSeq of [1, 2, 4, 100]) {
      const misplaced = transition(run.id, { afterSeq, events: [event("x")], next: park("paused") });
      expect(await fixture.store.commit(batch(null, [misplaced]))).toEqual({ kind: "conflict", runId: run.id });
    }
    expect(await fixture.log(run.id)).toHaveLength(3);
    expect(await fixture.run(run.id)).toMatchObject({ status: "waiting" });
  });

  test("a worker's commit that would leave a gap in a log, or start inside a packed row, conflicts", async () => {
    const worker = await fixture.registerWorker();
    const [run, other] = (await fixture.startOwnedRuns(2, worker)) as [NewRun, NewRun];
    await fixture.commitTransition(worker, transition(run.id, { events: events(3) }));
    await fixture.commitTransition(worker, transition(run.id, { afterSeq: 3, events: events(3) }));
    for (const afterSeq of [0, 1, 2, 3, 4, 5, 7, 12]) {
      const conflict = { kind: "conflict", runId: run.id };
      const misplaced = transition(run.id, { afterSeq, events: [event("late")] });
      const valid = transition(other.id, { events: [event("beside")] });
      expect(await fixture.store.commit(batch(worker, [misplaced]))).toEqual(conflict);
      expect(await fixture.store.commit(batch(worker, [valid, misplaced]))).toEqual(conflict);
      expect(await fixture.store.commit(batch(worker, [{ ...misplaced, next: finish() }]))).toEqual(conflict);
      expect(await fixture.store.commit(batch(worker, [{ ...misplaced, next: park() }]))).toEqual(conflict);
      expect(await (await fixture.store.beginTransaction()).commit(batch(worker, [misplaced]))).toEqual(conflict);
    }
    expect(await fixture.log(run.id)).toHaveLength(6);
    expect(await fixture.log(other.id)).toEqual([]);
    await fixture.commitTransition(worker, transition(run.id, { afterSeq: 6, events: [event("next")] }));
  });

  test("a client's commit without events conflicts with an owned run, too", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const ends = transition(run.id, { next: finish("canceled") });
    expect(await fixture.store.commit(batch(null, [ends]))).toEqual({ kind: "conflict", runId: run.id });
    expect(await fixture.run(run.id)).toMatchObject({ status: "running" });
  });
}
