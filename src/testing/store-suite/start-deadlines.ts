/** Start deadlines: their rows are written with the runs that have one, and stay until they are removed. */
import type { Hint, NewRun, StartDeadline } from "../../store/contract/store.js";
import { batch, event, finish, newId, newMessage, newRun, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";

const hourMs = 3_600_000;

export function startDeadlineTests(fixture: Fixture): void {
  const { test, expect } = fixture;
  const deadlines = () => fixture.store.maintenance.startDeadlines;

  const instantsOf = async (...runs: readonly { readonly id: string }[]): Promise<(number | undefined)[]> => {
    const found = new Map((await deadlines().ofRuns(runs.map(({ id }) => id))).map(({ runId, at }) => [runId, at]));
    return runs.map(({ id }) => found.get(id));
  };
  const inAnHour = { startBy: { kind: "in", ms: hourMs } } as const;

  test("a run with a start deadline has a row, and a run without one has none", async () => {
    const now = await fixture.store.now();
    const runs = [
      newRun(),
      newRun(inAnHour),
      newRun({ ...inAnHour, due: { kind: "in", ms: 1_000 } }),
      newRun({ ...inAnHour, due: { kind: "at", ms: now + 5 * hourMs } }),
      newRun({ ...inAnHour, due: { kind: "at", ms: now - 5 * hourMs } }),
      newRun({ ...inAnHour, due: { kind: "held" } }),
      newRun({ startBy: { kind: "at", ms: now + 7 } }),
      newRun({ startBy: { kind: "at", ms: now + 7 }, due: { kind: "in", ms: hourMs } }),
    ];
    const { at } = await fixture.commit(batch(null, [], runs));
    expect(await instantsOf(...runs)).toEqual([
      undefined,
      at + hourMs,
      at + 1_000 + hourMs,
      now + 6 * hourMs,
      at + hourMs,
      at + hourMs,
      now + 7,
      now + 7,
    ]);
  });

  test("children have start deadlines, too, and a repeated start of a child changes nothing", async () => {
    const worker = await fixture.registerWorker();
    const parent = await fixture.startOwned(worker);
    const child = newRun({ ...inAnHour, parentId: parent.id, parentNode: "send" });
    const first = transition(parent.id, { events: [event("one")], newChildren: [child] });
    const { at } = await fixture.commitTransition(worker, first);
    const again = { ...child, startBy: { kind: "in", ms: 2 * hourMs } } as const;
    const newChildren = [again, newRun({ parentId: parent.id, parentNode: "other" })];
    await fixture.commitTransition(worker, transition(parent.id, { afterSeq: 1, events: [event("two")], newChildren }));
    expect(await instantsOf(...newChildren)).toEqual([at + hourMs, undefined]);
  });

  test("a start that is refused has no row, and that of a start that is repeated stays as it is", async () => {
    const workflow = uniqueName("workflow");
    const run = newRun({ ...inAnHour, workflow, startKey: "key" });
    const { at } = await fixture.commit(batch(null, [], [run]));
    const refused = newRun({ ...inAnHour, workflow, startKey: "key" });
    const other = newRun({ ...inAnHour, workflow });
    const starts: NewRun[] = [refused, { ...run, startBy: { kind: "in", ms: 9 * hourMs } }, other];
    const result = await fixture.commit(batch(null, [], starts));
    expect(result.refused.map(({ runId }) => runId)).toEqual([refused.id]);
    expect(await instantsOf(run, refused, other)).toEqual([at + hourMs, undefined, result.at + hourMs]);
  });

  test("the earliest are read first, with the store's time, and heartbeats tell of the first", async () => {
    const worker = await fixture.registerWorker();
    const now = await fixture.store.now();
    const past = [-3, -2, -1].map((hours) => newRun({ startBy: { kind: "at", ms: now + hours * hourMs * 1_000 } }));
    await fixture.startAll([...past].reverse());
    const earliest = await deadlines().earliest(2);
    expect(earliest?.deadlines).toEqual(
      past.slice(0, 2).map(({ id, startBy }): StartDeadline => ({ runId: id, at: startBy?.ms as number })),
    );
    expect(earliest?.now).toBeGreaterThanOrEqual(now);
    const { nextStartDeadlineInMs } = await fixture.store.heartbeat(worker);
    expect(nextStartDeadlineInMs).toBeLessThanOrEqual(-3 * hourMs * 1_000);
    await deadlines().remove(earliest?.deadlines ?? []);
    expect((await deadlines().earliest(1))?.deadlines[0]?.runId).toBe(past[2]?.id);
  });

  test("without any there is nothing to read, and heartbeats say so", async () => {
    const all = await deadlines().earliest(10_000);
    await deadlines().remove(all?.deadlines ?? []);
    expect(await deadlines().earliest(1)).toBeNull();
    expect(await fixture.store.heartbeat(await fixture.registerWorker())).toMatchObject({
      nextStartDeadlineInMs: null,
    });
    expect(await deadlines().ofRuns([])).toEqual([]);
    await deadlines().remove([]);
  });

  test("a row whose instant is later than the one that was read is not removed", async () => {
    const run = await fixture.start(inAnHour);
    const [at] = await instantsOf(run);
    await deadlines().remove([{ runId: run.id, at: (at as number) - 1 }]);
    expect(await instantsOf(run)).toEqual([at]);
    await deadlines().remove([{ runId: run.id, at: at as number }]);
    expect(await instantsOf(run)).toEqual([undefined]);
  });

  test("a claim and the end of the run leave the row as it is, and deleting the run removes it", async () => {
    const run = await fixture.start(inAnHour);
    const worker = await fixture.registerWorker();
    await fixture.claimOne(worker, [{ workflow: run.workflow, version: "" }]);
    await fixture.commitTransition(worker, transition(run.id, { events: [event("one")], next: finish() }));
    const [at] = await instantsOf(run);
    expect(at).toBeGreaterThan(0);
    expect(await fixture.store.maintenance.deleteRuns([run.id])).toBe(1);
    expect(await instantsOf(run)).toEqual([undefined]);
    expect(await fixture.store.maintenance.audit.orphanedRunIds("start_deadlines", { after: null, limit: 9 })).toEqual(
      [],
    );
  });

  test("a start with a deadline gives a hint that says how long it is", async () => {
    const hints: Hint[] = [];
    const stop = fixture.store.watch((hint) => hints.push(hint));
    await fixture.start(inAnHour);
    stop();
    expect(hints.some((hint) => hint.kind === "startDeadline" && hint.inMs === hourMs)).toBe(true);
  });

  test("ids that are none are not found", async () => {
    expect(await deadlines().ofRuns(["nonsense", newId()])).toEqual([]);
  });

  test("a batch with messages, an end and new runs with deadlines writes all of it", async () => {
    const worker = await fixture.registerWorker();
    const [run, receiver] = [await fixture.startOwned(worker), await fixture.startOwned(worker)];
    const [plain, limited] = [newRun(), newRun({ ...inAnHour, heroKey: uniqueName("hero") })];
    const end = transition(run.id, {
      events: [event("end")],
      next: finish(),
      messages: [newMessage(receiver.id, "x")],
    });
    const { at, refused } = await fixture.commit(batch(worker, [end], [plain, limited]));
    expect(refused).toEqual([]);
    expect(await instantsOf(plain, limited)).toEqual([undefined, at + hourMs]);
  });

  const { transactions } = fixture.harness;
  if (transactions === undefined) return;

  test("in the caller's transaction the row is written and rolled back with the run", async () => {
    const [kept, dropped] = [newRun(inAnHour), newRun(inAnHour)];
    const committed = await transactions.beginCallerTransaction();
    const { at } = await fixture.store.startInTransaction(committed.tx, [kept]);
    await committed.commit();
    const undone = await transactions.beginCallerTransaction();
    await fixture.store.startInTransaction(undone.tx, [dropped]);
    await undone.rollback();
    expect(await instantsOf(kept, dropped)).toEqual([at + hourMs, undefined]);
  });
}
