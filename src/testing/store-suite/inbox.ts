/** Messages: they arrive in order, wake who is parked, and are never lost between a sender and a run that parks. */
import type { InboxRow, NewRun, Transition } from "../../store/contract/store.js";
import {
  batch,
  delay,
  event,
  events,
  finish,
  letter,
  newId,
  newRuns,
  park,
  routesOf,
  transition,
  types,
} from "./builders.js";
import type { Fixture } from "./fixture.js";

export function inboxTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  const ids = (rows: readonly InboxRow[]) => rows.map(({ id }) => id);
  const contents = (rows: readonly InboxRow[]) => rows.map(({ data }) => data);

  test("a message is stored, counted, and makes a parked run ready at once", async () => {
    for (const due of [{ kind: "held" }, { kind: "in", ms: 3_600_000 }] as const) {
      const run = await fixture.start({ due });
      const before = await fixture.store.now();
      expect(await fixture.store.send([{ to: run.id, kind: "signal", data: '{"a":1}' }])).toEqual({
        undeliverable: [],
      });
      const [row, ...rest] = await fixture.inbox(run.id);
      expect(rest).toEqual([]);
      expect(row).toMatchObject({ kind: "signal", data: '{"a":1}' });
      expect(row?.at).toBeGreaterThanOrEqual(before);
      const task = await fixture.task(run.id);
      expect(task).toMatchObject({ state: "ready", dueAt: row?.at, mail: 1, owner: null });
      const worker = await fixture.worker();
      expect(await fixture.claimOne(worker, routesOf(run))).toMatchObject({ mail: 1, deliveries: 1 });
    }
  });

  test("a message to a run that is ready or owned only counts", async () => {
    const worker = await fixture.worker();
    const ready = await fixture.start();
    const owned = await fixture.owned(worker);
    const before = await fixture.tasks(ready, owned);
    await delay(5);
    await fixture.store.send([letter(ready.id, "1"), letter(owned.id, "1")]);
    await fixture.store.send([letter(owned.id, "2")]);
    const mail = new Map([
      [ready.id, 1],
      [owned.id, 2],
    ]);
    expect(await fixture.tasks(ready, owned)).toEqual(before.map((task) => ({ ...task, mail: mail.get(task.runId) })));
  });

  test("messages of one run are in the order of their arrival, and their ids grow", async () => {
    const run = await fixture.start();
    const other = await fixture.start();
    await fixture.store.send([letter(run.id, "a"), letter(other.id, "x"), letter(run.id, "b")]);
    await fixture.store.send([letter(run.id, "c")]);
    await fixture.store.send([letter(other.id, "y"), letter(run.id, "d")]);
    const rows = await fixture.inbox(run.id);
    expect(contents(rows)).toEqual(["a", "b", "c", "d"]);
    expect(ids(rows)).toEqual([...ids(rows)].sort((a, b) => a - b));
    expect(new Set(ids(rows)).size).toBe(4);
    const both = await fixture.store.inbox([other.id, newId(), run.id]);
    expect(contents(both.get(run.id) ?? [])).toEqual(["a", "b", "c", "d"]);
    expect(contents(both.get(other.id) ?? [])).toEqual(["x", "y"]);
    expect((await fixture.store.inbox([])).size).toBe(0);
  });

  test("who has no task gets no message, and the sender is told", async () => {
    const ended = await fixture.start();
    await fixture.move(null, transition(ended.id, { events: [event("end")], next: finish() }));
    const run = await fixture.start();
    const nobody = newId();
    const { undeliverable } = await fixture.store.send([
      letter(ended.id, "1"),
      letter(run.id, "2"),
      letter(nobody, "3"),
      letter(run.id, "4"),
    ]);
    expect(new Set(undeliverable)).toEqual(new Set([ended.id, nobody]));
    expect(contents(await fixture.inbox(run.id))).toEqual(["2", "4"]);
    expect(await fixture.inbox(ended.id)).toEqual([]);
    expect(await fixture.inbox(nobody)).toEqual([]);
    expect(await fixture.store.send([])).toEqual({ undeliverable: [] });
  });

  test("drained messages are gone and counted off; the others stay", async () => {
    const worker = await fixture.worker();
    const run = await fixture.owned(worker);
    const other = await fixture.owned(worker);
    await fixture.store.send(["1", "2", "3", "4"].map((data) => letter(run.id, data)));
    await fixture.store.send([letter(other.id, "x")]);
    const [one, two, three] = ids(await fixture.inbox(run.id)) as [number, number, number];
    const drain = (after: number, drained: number[]) =>
      fixture.move(worker, transition(run.id, { after, events: events(drained.length), drained }));
    await drain(0, [one, three]);
    expect(contents(await fixture.inbox(run.id))).toEqual(["2", "4"]);
    expect(await fixture.task(run.id)).toMatchObject({ mail: 2, state: "owned" });
    await drain(2, [two]);
    expect(contents(await fixture.inbox(run.id))).toEqual(["4"]);
    expect(await fixture.task(run.id)).toMatchObject({ mail: 1 });
    expect(await fixture.task(other.id)).toMatchObject({ mail: 1 });
    expect(contents(await fixture.inbox(other.id))).toEqual(["x"]);
  });

  test("a batch drains many runs at once", async () => {
    const worker = await fixture.worker();
    const runs = newRuns(40, { due: { kind: "owned" } });
    await fixture.startAll(runs, worker);
    await fixture.store.send(runs.flatMap(({ id }) => [letter(id, "1"), letter(id, "2")]));
    const inboxes = await fixture.store.inbox(runs.map(({ id }) => id));
    const transitions = runs.map(({ id }, index) =>
      transition(id, {
        events: [event("got")],
        drained: ids(inboxes.get(id) ?? []).slice(0, 1 + (index % 2)),
        next: index % 2 === 1 ? park() : { kind: "keep" },
      }),
    );
    const { kept } = await fixture.commit(batch(worker, transitions));
    expect(kept).toEqual([]);
    for (const [index, { id }] of runs.entries()) {
      expect(await fixture.task(id)).toMatchObject({ mail: index % 2 === 0 ? 1 : 0 });
    }
  });

  test("a run that would park with undrained mail is kept: its events count, its row and task stay", async () => {
    const worker = await fixture.worker();
    const run = await fixture.owned(worker);
    const addressee = await fixture.start({ due: { kind: "held" } });
    const before = [await fixture.run(run.id), { ...(await fixture.task(run.id)), mail: 1 }];
    await fixture.store.send([letter(run.id, "late")]);
    const rest: Partial<Transition> = {
      events: [event("wait")],
      cursors: [{ node: "n", cursor: "1" }],
      mail: [letter(addressee.id, "hello")],
    };
    const next = park("waiting", { waiting: "w", startedAt: "now", wakeIn: 0 });
    const { kept } = await fixture.move(worker, transition(run.id, { ...rest, next }));
    expect(kept).toEqual([run.id]);
    expect(types(await fixture.log(run.id))).toEqual(["wait"]);
    expect([await fixture.run(run.id), await fixture.task(run.id)]).toEqual(before);
    expect(await fixture.store.cursors(run.id)).toMatchObject([{ cursor: "1" }]);
    expect(contents(await fixture.inbox(addressee.id))).toEqual(["hello"]);
    expect((await fixture.claim(worker, routesOf(run))).tasks).toEqual([]);

    const drained = ids(await fixture.inbox(run.id));
    const again = transition(run.id, { after: 1, events: [event("got"), event("wait")], drained, next });
    expect((await fixture.move(worker, again)).kept).toEqual([]);
    expect(await fixture.run(run.id)).toMatchObject({ status: "waiting", waiting: "w" });
    expect(await fixture.task(run.id)).toMatchObject({ state: "ready", mail: 0, deliveries: 0 });
  });

  test("a run is kept when only some of its mail is drained, and parked when all of it is", async () => {
    const worker = await fixture.worker();
    const [some, all, none] = (await fixture.ownedRuns(3, worker)) as [NewRun, NewRun, NewRun];
    await fixture.store.send([some, all].flatMap(({ id }) => [letter(id, "1"), letter(id, "2")]));
    const drained = async (run: NewRun, howMany: number) => ids(await fixture.inbox(run.id)).slice(0, howMany);
    const transitions = [
      transition(some.id, { events: [event("w")], drained: await drained(some, 1), next: park() }),
      transition(all.id, { events: [event("w")], drained: await drained(all, 2), next: park() }),
      transition(none.id, { events: [event("w")], next: park() }),
    ];
    const { kept } = await fixture.commit(batch(worker, transitions));
    expect(kept).toEqual([some.id]);
    expect(await fixture.task(some.id)).toMatchObject({ state: "owned", mail: 1, owner: worker.workerId });
    expect(await fixture.task(all.id)).toMatchObject({ state: "parked", mail: 0 });
    expect(await fixture.task(none.id)).toMatchObject({ state: "parked", mail: 0 });
  });

  test("a commit names the kept runs that have messages it does not drain", async () => {
    const worker = await fixture.worker();
    const [written, drainedAll, drainedSome, parked, ended, silent] = (await fixture.ownedRuns(6, worker)) as NewRun[];
    const addressed = [written, drainedAll, drainedSome, parked, ended] as NewRun[];
    await fixture.store.send(addressed.flatMap(({ id }) => [letter(id, "1"), letter(id, "2")]));
    const rows = async (run: NewRun | undefined, howMany: number) =>
      ids(await fixture.inbox((run as NewRun).id)).slice(0, howMany);
    const one = (run: NewRun | undefined, rest: Partial<Transition>) =>
      transition((run as NewRun).id, { events: [event("a")], ...rest });
    const { mailed } = await fixture.commit(
      batch(worker, [
        one(written, {}),
        one(drainedAll, { drained: await rows(drainedAll, 2) }),
        one(drainedSome, { drained: await rows(drainedSome, 1) }),
        one(parked, { next: park() }),
        one(ended, { drained: await rows(ended, 2), next: finish() }),
        one(silent, {}),
      ]),
    );
    expect([...mailed].sort()).toEqual([written, drainedSome].map((run) => (run as NewRun).id).sort());
  });

  test("a commit of one event, of one checkpoint, or in a transaction names its run when a message waits", async () => {
    const worker = await fixture.worker();
    const run = await fixture.owned(worker);
    const cursors = [{ node: "n", cursor: "1", progress: "1" }];
    const appended = await fixture.move(worker, transition(run.id, { events: [event("a")] }));
    const created = await fixture.move(worker, transition(run.id, { after: 1, cursors }));
    const moved = await fixture.move(worker, transition(run.id, { after: 1, cursors }));
    expect([appended.mailed, created.mailed, moved.mailed]).toEqual([[], [], []]);

    await fixture.store.send([letter(run.id, "1")]);
    expect((await fixture.move(worker, transition(run.id, { after: 1, events: [event("b")] }))).mailed).toEqual([
      run.id,
    ]);
    expect((await fixture.move(worker, transition(run.id, { after: 2, cursors }))).mailed).toEqual([run.id]);
    const elsewhere = [{ node: "other", progress: "1" }];
    expect((await fixture.move(worker, transition(run.id, { after: 2, cursors: elsewhere }))).mailed).toEqual([run.id]);
    const transaction = await fixture.store.begin();
    const given = batch(worker, [transition(run.id, { after: 2, events: [event("c")] })]);
    expect(await transaction.commit(given)).toMatchObject({ kind: "committed", mailed: [run.id] });

    const drained = ids(await fixture.inbox(run.id));
    const { mailed } = await fixture.move(worker, transition(run.id, { after: 3, events: [event("d")], drained }));
    expect(mailed).toEqual([]);
  });

  test("a run that has messages does not end before they are drained, and nothing of the batch is written", async () => {
    const worker = await fixture.worker();
    const [run, other, parent] = (await fixture.ownedRuns(3, worker)) as [NewRun, NewRun, NewRun];
    await fixture.store.send([letter(run.id, "early"), letter(run.id, "late")]);
    const [early, late] = ids(await fixture.inbox(run.id)) as [number, number];
    const ends = (drained: readonly number[]) =>
      batch(worker, [
        transition(run.id, { events: [event("end")], mail: [letter(parent.id, "done")], drained, next: finish() }),
        transition(other.id, { events: [event("end")], next: finish() }),
      ]);
    for (const drained of [[], [early]])
      expect(await fixture.store.commit(ends(drained))).toEqual({ kind: "conflict", runId: run.id, unread: true });
    expect(await fixture.run(run.id)).toMatchObject({ status: "running" });
    expect(await fixture.run(other.id)).toMatchObject({ status: "running" });
    expect(await fixture.inbox(parent.id)).toEqual([]);
    expect(await fixture.inbox(run.id)).toHaveLength(2);
    await fixture.commit(ends([early, late]));
    expect(await fixture.run(run.id)).toMatchObject({ status: "completed" });
    expect(await fixture.inbox(run.id)).toEqual([]);
    expect((await fixture.store.send([letter(run.id, "later")])).undeliverable).toEqual([run.id]);
  });

  test("a transition's mail reaches runs of any owner, and of none", async () => {
    const [sender, owner] = [await fixture.worker(), await fixture.worker()];
    const [from, also] = (await fixture.ownedRuns(2, sender)) as [NewRun, NewRun];
    const theirs = await fixture.owned(owner);
    const mine = await fixture.owned(sender);
    const parked = await fixture.start({ due: { kind: "held" } });
    const ended = await fixture.start();
    await fixture.move(null, transition(ended.id, { events: [event("end")], next: finish() }));
    const { at } = await fixture.commit(
      batch(sender, [
        transition(from.id, {
          events: [event("send")],
          mail: [theirs, parked, ended, mine, parked].map(({ id }, index) => letter(id, `from${index}`, "child")),
        }),
        transition(also.id, { events: [event("end")], next: finish(), mail: [letter(parked.id, "also")] }),
      ]),
    );
    expect(await fixture.inbox(theirs.id)).toMatchObject([{ kind: "child", data: "from0", at }]);
    expect(await fixture.task(theirs.id)).toMatchObject({ state: "owned", owner: owner.workerId, mail: 1 });
    expect(await fixture.task(mine.id)).toMatchObject({ state: "owned", owner: sender.workerId, mail: 1 });
    const arrived = contents(await fixture.inbox(parked.id));
    expect(arrived.filter((data) => data !== "also")).toEqual(["from1", "from4"]);
    expect(arrived).toContain("also");
    expect(await fixture.task(parked.id)).toMatchObject({ state: "ready", dueAt: at, mail: 3 });
    expect(await fixture.inbox(ended.id)).toEqual([]);
  });

  test("a client's commit sends mail too", async () => {
    const from = await fixture.start();
    const to = await fixture.start({ due: { kind: "held" } });
    const mail = [letter(to.id, "done")];
    await fixture.move(null, transition(from.id, { events: [event("end")], next: finish("canceled"), mail }));
    expect(contents(await fixture.inbox(to.id))).toEqual(["done"]);
    expect(await fixture.task(to.id)).toMatchObject({ state: "ready", mail: 1 });
  });

  test("five hundred messages of one batch arrive in order", async () => {
    const worker = await fixture.worker();
    const [from, to] = (await fixture.ownedRuns(2, worker)) as [NewRun, NewRun];
    const mail = Array.from({ length: 500 }, (_, index) => letter(to.id, `${index}`));
    await fixture.move(worker, transition(from.id, { events: [event("send")], mail }));
    expect(contents(await fixture.inbox(to.id))).toEqual(mail.map(({ data }) => data));
    expect(await fixture.task(to.id)).toMatchObject({ mail: 500 });
  });
}
