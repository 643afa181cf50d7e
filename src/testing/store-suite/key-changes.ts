/** Batches that take a key from the run that holds it, or replace what a run was started with: all of it, or nothing. */
import type { KeyChange, NewRun } from "../../store/contract/store.js";
import { batch, event, eventTypes, finish, newMessage, newRun, park, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";

export function keyChangeTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  const commit = (change: Partial<KeyChange>, starts: readonly NewRun[], transitions = batch(null, []).transitions) =>
    fixture.store.commit({
      ...batch(null, transitions, starts),
      keyChange: { openRun: null, moves: [], replacement: null, ...change },
    });
  const taken = (runId: string, value = "key") => [{ runId, key: "startKey", value, to: null }] as const;
  const holderOf = async (workflow: string, startKey = "key") =>
    (await fixture.store.runs({ workflow, startKey, limit: 9 })).map(({ id }) => id);

  test("a start takes over the start key of a run, and the hero key", async () => {
    const heroKey = uniqueName("hero");
    const first = await fixture.start({ startKey: "key", heroKey, heroType: "User", heroId: "1" });
    const second = newRun({ workflow: first.workflow, startKey: "key", heroKey });
    const moves = [...taken(first.id), { runId: first.id, key: "heroKey", value: heroKey, to: null } as const];
    expect(await commit({ moves, openRun: { id: first.id, message: null } }, [second])).toMatchObject({
      kind: "committed",
      refused: [],
    });
    expect(await holderOf(first.workflow)).toEqual([second.id]);
    const [row, other] = await fixture.store.maintenance.audit.runsById([first.id, second.id]);
    expect([row?.heroKey, row?.startKey, other?.heroKey]).toEqual([null, null, heroKey]);
    const third = newRun({ workflow: first.workflow, heroKey });
    const { refused } = await fixture.commit(batch(null, [], [third]));
    expect(refused).toMatchObject([{ reason: "heroKey", existing: { id: second.id } }]);
  });

  test("a key can be given to an open run", async () => {
    const first = await fixture.start({ startKey: "key" });
    const second = await fixture.start({ workflow: first.workflow });
    const moves = [{ runId: first.id, key: "startKey", value: "key", to: second.id }] as const;
    const end = transition(first.id, { events: [event("end")], next: finish("canceled") });
    expect(await commit({ openRun: { id: second.id, message: null }, moves }, [], [end])).toMatchObject({
      kind: "committed",
    });
    expect(await holderOf(first.workflow)).toEqual([second.id]);
    expect(await fixture.run(first.id)).toMatchObject({ status: "canceled", startKey: null });
  });

  test("nothing is written if the run does not hold the key, or has ended, or another key of the start is taken", async () => {
    const first = await fixture.start({ startKey: "key" });
    const worker = await fixture.registerWorker();
    const ended = await fixture.startOwned(worker, { workflow: first.workflow });
    await fixture.commitTransition(worker, transition(ended.id, { events: [event("end")], next: finish() }));
    const hero = await fixture.start({ workflow: first.workflow, heroKey: uniqueName("hero") });
    const start = (rest: Partial<NewRun> = {}) => newRun({ workflow: first.workflow, startKey: "key", ...rest });
    const refusals: [Partial<KeyChange>, NewRun][] = [
      [{ moves: taken(first.id, "another") }, start()],
      [{ moves: taken(ended.id) }, start()],
      [{ moves: taken(first.id), openRun: { id: ended.id, message: null } }, start()],
      [{ moves: taken(first.id) }, start({ heroKey: hero.heroKey })],
      [{ moves: taken(first.id), keylessRunId: hero.id }, start()],
    ];
    for (const [change, run] of refusals) {
      expect(await commit(change, [run])).toMatchObject({ kind: "conflict" });
      expect(await fixture.store.run(run.id)).toBeNull();
      expect(await holderOf(first.workflow)).toEqual([first.id]);
    }
  });

  test("a transition that conflicts keeps the keys where they are", async () => {
    const first = await fixture.start({ startKey: "key" });
    const worker = await fixture.registerWorker();
    const owned = await fixture.startOwned(worker);
    const write = transition(owned.id, { events: [event("x")], next: park() });
    const result = await commit(
      { moves: taken(first.id) },
      [newRun({ workflow: first.workflow, startKey: "key" })],
      [write],
    );
    expect(result).toEqual({ kind: "conflict", runId: owned.id });
    expect(await holderOf(first.workflow)).toEqual([first.id]);
  });

  test("of many batches that take the same key, one is written", async () => {
    const first = await fixture.start({ startKey: "key" });
    const runs = Array.from({ length: 8 }, () => newRun({ workflow: first.workflow, startKey: "key" }));
    const other = await fixture.openAnother();
    const results = await Promise.all(
      runs.map((run, index) =>
        (index % 2 === 0 ? fixture.store : other).commit({
          ...batch(null, [], [run]),
          keyChange: { openRun: { id: first.id, message: null }, moves: taken(first.id), replacement: null },
        }),
      ),
    );
    const written = runs.filter((_, index) => results[index]?.kind === "committed");
    expect(written).toHaveLength(1);
    expect(await holderOf(first.workflow)).toEqual(written.map(({ id }) => id));
  });

  test("a run that ends at the same moment gets the message first, or the batch is refused", async () => {
    const worker = await fixture.registerWorker();
    for (let round = 0; round < 8; round += 1) {
      const first = await fixture.startOwned(worker, { startKey: "key" });
      const run = newRun({ workflow: first.workflow, startKey: "key", due: { kind: "held" } });
      const openRun = { id: first.id, message: newMessage(first.id, "wait") };
      const end = transition(first.id, { events: [event("end")], next: finish() });
      const [ended, result] = await Promise.all([
        fixture.store.commit(batch(worker, [end])),
        commit({ openRun, moves: taken(first.id) }, [run]),
      ]);
      if (result.kind === "committed") {
        expect(ended).toEqual({ kind: "conflict", runId: first.id, hasUnreadMessages: true });
        expect((await fixture.inbox(first.id)).map(({ data }) => data)).toEqual(["wait"]);
      } else expect([ended.kind, await fixture.store.run(run.id)]).toEqual(["committed", null]);
    }
  });

  test("a message wakes no run that is parked: the batch is refused", async () => {
    const first = await fixture.start({ startKey: "key", due: { kind: "held" } });
    const openRun = { id: first.id, message: newMessage(first.id, "wait") };
    const run = newRun({ workflow: first.workflow, startKey: "key" });
    expect(await commit({ openRun, moves: taken(first.id) }, [run])).toEqual({ kind: "conflict", runId: first.id });
    expect(await fixture.task(first.id)).toMatchObject({ state: "parked", pendingMessages: 0 });
  });

  test("a replacement changes what the run was started with, when it is due and by when it must begin", async () => {
    const first = await fixture.start({
      ...{ startKey: "key", priority: 1, input: "1", tags: ["old"], startBy: { kind: "in", ms: 1_000 } },
      due: { kind: "in", ms: 3_600_000 },
    });
    const replacement = {
      ...{ runId: first.id, version: "", priority: 5, input: '"new"', tags: ["a", "b"], startedBy: '{"by":"ada"}' },
      due: { kind: "in", ms: 7_200_000 } as const,
    };
    const next = park("pending", { wakeInMs: 7_200_000, priority: 5 });
    const change = transition(first.id, { events: [event("replaced")], next });
    const result = await commit({ replacement: { ...replacement, startBy: { kind: "in", ms: 5 } } }, [], [change]);
    expect(result).toMatchObject({ kind: "committed" });
    const at = result.kind === "committed" ? result.at : 0;
    expect(await fixture.run(first.id)).toMatchObject({
      ...{
        priority: 5,
        input: '"new"',
        tags: ["a", "b"],
        startedBy: '{"by":"ada"}',
        status: "pending",
        startKey: "key",
      },
    });
    expect(await fixture.task(first.id)).toMatchObject({ state: "parked", dueAt: at + 7_200_000 });
    const { startDeadlines } = fixture.store.maintenance;
    // The database may have read its clock for the deadline a little earlier than for the task.
    const [deadline] = await startDeadlines.ofRuns([first.id]);
    expect(deadline?.at).toBeLessThanOrEqual(at + 7_200_005);
    expect(deadline?.at).toBeGreaterThan(at + 3_600_000);
    expect(eventTypes(await fixture.log(first.id))).toEqual(["replaced"]);
    const again = transition(first.id, {
      afterSeq: 1,
      events: [event("again")],
      next: park("pending", { wakeInMs: 0 }),
    });
    await commit({ replacement: { ...replacement, tags: [], due: { kind: "now" } } }, [], [again]);
    expect(await startDeadlines.ofRuns([first.id])).toEqual([]);
    expect(await fixture.run(first.id)).toMatchObject({ tags: [] });
    const worker = await fixture.registerWorker();
    const task = await fixture.claimOne(worker, [{ workflow: first.workflow, version: "" }]);
    expect(task).toMatchObject({ isFresh: false, run: { input: '"new"' } });
  });

  test("a replacement of a run that a worker has taken is refused", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker, { input: "1" });
    const replacement = {
      runId: run.id,
      version: "",
      priority: 0,
      input: "2",
      tags: [],
      due: { kind: "now" },
    } as const;
    const change = transition(run.id, { events: [event("replaced")], next: park("pending", { wakeInMs: 0 }) });
    expect(await commit({ replacement }, [], [change])).toMatchObject({ kind: "conflict" });
    expect(await fixture.run(run.id)).toMatchObject({ input: "1" });
  });
}
