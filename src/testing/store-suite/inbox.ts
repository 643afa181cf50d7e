/** Messages: they arrive in order, wake parked runs, and are never lost between a sender and a run that parks. */
import type { InboxRow, NewRun, Transition } from "../../store/contract/store.js";
import {
  batch,
  delay,
  event,
  events,
  eventTypes,
  finish,
  newId,
  newMessage,
  newRuns,
  park,
  routesOf,
  transition,
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
      expect(task).toMatchObject({ state: "ready", dueAt: row?.at, pendingMessages: 1, owner: null });
      const worker = await fixture.registerWorker();
      expect(await fixture.claimOne(worker, routesOf(run))).toMatchObject({ pendingMessages: 1, deliveries: 1 });
    }
  });

  test("a message to a run that is ready or owned only changes the count of its messages", async () => {
    const worker = await fixture.registerWorker();
    const ready = await fixture.start();
    const owned = await fixture.startOwned(worker);
    const before = await fixture.tasks(ready, owned);
    await delay(5);
    await fixture.store.send([newMessage(ready.id, "1"), newMessage(owned.id, "1")]);
    await fixture.store.send([newMessage(owned.id, "2")]);
    const messageCounts = new Map([
      [ready.id, 1],
      [owned.id, 2],
    ]);
    expect(await fixture.tasks(ready, owned)).toEqual(
      before.map((task) => ({ ...task, pendingMessages: messageCounts.get(task.runId) })),
    );
  });

  test("a batch that repeats the start of a child delivers its messages to the child, unless that has ended", async () => {
    const worker = await fixture.registerWorker();
    const parent = await fixture.startOwned(worker);
    const [ended, open] = newRuns(2, { parentId: parent.id, parentNode: "n" }) as [NewRun, NewRun];
    await fixture.commitTransition(worker, transition(parent.id, { newChildren: [ended, open] }));
    await fixture.commitTransition(null, transition(ended.id, { events: [event("end")], next: finish() }));
    const messages = [newMessage(ended.id, "1"), newMessage(open.id, "2")];
    await fixture.commitTransition(worker, transition(parent.id, { newChildren: [ended, open], messages }));
    expect(await fixture.inbox(ended.id)).toEqual([]);
    expect(contents(await fixture.inbox(open.id))).toEqual(["2"]);
    expect(await fixture.task(open.id)).toMatchObject({ pendingMessages: 1 });
  });

  test("messages of one run are in the order of their arrival, and their ids grow", async () => {
    const run = await fixture.start();
    const other = await fixture.start();
    await fixture.store.send([newMessage(run.id, "a"), newMessage(other.id, "x"), newMessage(run.id, "b")]);
    await fixture.store.send([newMessage(run.id, "c")]);
    await fixture.store.send([newMessage(other.id, "y"), newMessage(run.id, "d")]);
    const rows = await fixture.inbox(run.id);
    expect(contents(rows)).toEqual(["a", "b", "c", "d"]);
    expect(ids(rows)).toEqual([...ids(rows)].sort((a, b) => a - b));
    expect(new Set(ids(rows)).size).toBe(4);
    const both = await fixture.store.inbox([other.id, newId(), run.id]);
    expect(contents(both.get(run.id) ?? [])).toEqual(["a", "b", "c", "d"]);
    expect(contents(both.get(other.id) ?? [])).toEqual(["x", "y"]);
    expect((await fixture.store.inbox([])).size).toBe(0);
  });

  test("a run without a task gets no message, and the sender gets its id back", async () => {
    const ended = await fixture.start();
    await fixture.commitTransition(null, transition(ended.id, { events: [event("end")], next: finish() }));
    const run = await fixture.start();
    const unknownId = newId();
    const { undeliverable } = await fixture.store.send([
      newMessage(ended.id, "1"),
      newMessage(run.id, "2"),
      newMessage(unknownId, "3"),
      newMessage(run.id, "4"),
    ]);
    expect(new Set(undeliverable)).toEqual(new Set([ended.id, unknownId]));
    expect(contents(await fixture.inbox(run.id))).toEqual(["2", "4"]);
    expect(await fixture.inbox(ended.id)).toEqual([]);
    expect(await fixture.inbox(unknownId)).toEqual([]);
    expect(await fixture.store.send([])).toEqual({ undeliverable: [] });
  });

  test("a message that is right for one state of a run is delivered only while the run is in that state", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    await fixture.commitTransition(worker, transition(run.id, { events: events(2) }));
    const send = async (data: string, pendingMessages: number, lastEvent: number | null) =>
      (await fixture.store.send([newMessage(run.id, data)], { pendingMessages, lastEvent })).undeliverable.length === 0;
    expect(await send("another message", 1, null)).toBe(false);
    expect(await send("another event", 0, 1)).toBe(false);
    expect(await send("later events", 0, 3)).toBe(false);
    expect(await fixture.task(run.id)).toMatchObject({ pendingMessages: 0, state: "owned" });
    expect(await send("a", 0, 2)).toBe(true);
    expect(await send("too late", 0, 2)).toBe(false);
    expect(await send("b", 1, null)).toBe(true);
    expect(contents(await fixture.inbox(run.id))).toEqual(["a", "b"]);
    expect(await fixture.task(run.id)).toMatchObject({ pendingMessages: 2 });
    const fresh = await fixture.start();
    const { undeliverable } = await fixture.store.send([newMessage(fresh.id, "c")], {
      pendingMessages: 0,
      lastEvent: 0,
    });
    expect(undeliverable).toEqual([]);
    const unknownId = newId();
    const toNobody = await fixture.store.send([newMessage(unknownId, "d")], { pendingMessages: 0, lastEvent: null });
    expect(toNobody.undeliverable).toEqual([unknownId]);
  });

  test("of several such messages that are sent at once, one is delivered", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    for (let pendingMessages = 0; pendingMessages < 5; pendingMessages += 1) {
      const seen = { pendingMessages, lastEvent: 0 };
      const sent = await Promise.all(
        Array.from({ length: 8 }, () => fixture.store.send([newMessage(run.id, "x")], seen)),
      );
      expect(sent.filter(({ undeliverable }) => undeliverable.length === 0).length).toBe(1);
    }
    expect(await fixture.task(run.id)).toMatchObject({ pendingMessages: 5 });
  });

  test("drained messages are deleted and no longer counted; the others stay", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const other = await fixture.startOwned(worker);
    await fixture.store.send(["1", "2", "3", "4"].map((data) => newMessage(run.id, data)));
    await fixture.store.send([newMessage(other.id, "x")]);
    const [one, two, three] = ids(await fixture.inbox(run.id)) as [number, number, number];
    const drain = (afterSeq: number, drainedInboxIds: number[]) =>
      fixture.commitTransition(
        worker,
        transition(run.id, { afterSeq, events: events(drainedInboxIds.length), drainedInboxIds }),
      );
    await drain(0, [one, three]);
    expect(contents(await fixture.inbox(run.id))).toEqual(["2", "4"]);
    expect(await fixture.task(run.id)).toMatchObject({ pendingMessages: 2, state: "owned" });
    await drain(2, [two]);
    expect(contents(await fixture.inbox(run.id))).toEqual(["4"]);
    expect(await fixture.task(run.id)).toMatchObject({ pendingMessages: 1 });
    expect(await fixture.task(other.id)).toMatchObject({ pendingMessages: 1 });
    expect(contents(await fixture.inbox(other.id))).toEqual(["x"]);
  });

  test("a batch drains many runs at once", async () => {
    const worker = await fixture.registerWorker();
    const runs = newRuns(40, { due: { kind: "owned" } });
    await fixture.startAll(runs, worker);
    await fixture.store.send(runs.flatMap(({ id }) => [newMessage(id, "1"), newMessage(id, "2")]));
    const inboxes = await fixture.store.inbox(runs.map(({ id }) => id));
    const transitions = runs.map(({ id }, index) =>
      transition(id, {
        events: [event("got")],
        drainedInboxIds: ids(inboxes.get(id) ?? []).slice(0, 1 + (index % 2)),
        next: index % 2 === 1 ? park() : { kind: "keep" },
      }),
    );
    const { notParked } = await fixture.commit(batch(worker, transitions));
    expect(notParked).toEqual([]);
    for (const [index, { id }] of runs.entries()) {
      expect(await fixture.task(id)).toMatchObject({ pendingMessages: index % 2 === 0 ? 1 : 0 });
    }
  });

  test("a run that would park with undrained messages is not parked: its events are written, its row and task stay", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const recipient = await fixture.start({ due: { kind: "held" } });
    const before = [await fixture.run(run.id), { ...(await fixture.task(run.id)), pendingMessages: 1 }];
    await fixture.store.send([newMessage(run.id, "late")]);
    const rest: Partial<Transition> = {
      events: [event("wait")],
      cursors: [{ node: "n", cursor: "1" }],
      messages: [newMessage(recipient.id, "hello")],
    };
    const next = park("waiting", { waiting: "w", startedAt: "now", wakeInMs: 0 });
    const { notParked } = await fixture.commitTransition(worker, transition(run.id, { ...rest, next }));
    expect(notParked).toEqual([run.id]);
    expect(eventTypes(await fixture.log(run.id))).toEqual(["wait"]);
    expect([await fixture.run(run.id), await fixture.task(run.id)]).toEqual(before);
    expect(await fixture.store.cursors(run.id)).toMatchObject([{ cursor: "1" }]);
    expect(contents(await fixture.inbox(recipient.id))).toEqual(["hello"]);
    expect((await fixture.claim(worker, routesOf(run))).tasks).toEqual([]);

    const drainedInboxIds = ids(await fixture.inbox(run.id));
    const again = transition(run.id, { afterSeq: 1, events: [event("got"), event("wait")], drainedInboxIds, next });
    expect((await fixture.commitTransition(worker, again)).notParked).toEqual([]);
    expect(await fixture.run(run.id)).toMatchObject({ status: "waiting", waiting: "w" });
    expect(await fixture.task(run.id)).toMatchObject({ state: "ready", pendingMessages: 0, deliveries: 0 });
  });

  test("a run is kept if only some of its messages are drained, and parked if all of them are", async () => {
    const worker = await fixture.registerWorker();
    const [some, all, none] = (await fixture.startOwnedRuns(3, worker)) as [NewRun, NewRun, NewRun];
    await fixture.store.send([some, all].flatMap(({ id }) => [newMessage(id, "1"), newMessage(id, "2")]));
    const drained = async (run: NewRun, howMany: number) => ids(await fixture.inbox(run.id)).slice(0, howMany);
    const transitions = [
      transition(some.id, { events: [event("w")], drainedInboxIds: await drained(some, 1), next: park() }),
      transition(all.id, { events: [event("w")], drainedInboxIds: await drained(all, 2), next: park() }),
      transition(none.id, { events: [event("w")], next: park() }),
    ];
    const { notParked } = await fixture.commit(batch(worker, transitions));
    expect(notParked).toEqual([some.id]);
    expect(await fixture.task(some.id)).toMatchObject({ state: "owned", pendingMessages: 1, owner: worker.workerId });
    expect(await fixture.task(all.id)).toMatchObject({ state: "parked", pendingMessages: 0 });
    expect(await fixture.task(none.id)).toMatchObject({ state: "parked", pendingMessages: 0 });
  });

  test("a commit names the kept runs that have messages it does not drain", async () => {
    const worker = await fixture.registerWorker();
    const [written, drainedAll, drainedSome, parked, ended, runWithoutMessages] = (await fixture.startOwnedRuns(
      6,
      worker,
    )) as NewRun[];
    const recipients = [written, drainedAll, drainedSome, parked, ended] as NewRun[];
    await fixture.store.send(recipients.flatMap(({ id }) => [newMessage(id, "1"), newMessage(id, "2")]));
    const rows = async (run: NewRun | undefined, howMany: number) =>
      ids(await fixture.inbox((run as NewRun).id)).slice(0, howMany);
    const transitionOf = (run: NewRun | undefined, rest: Partial<Transition>) =>
      transition((run as NewRun).id, { events: [event("a")], ...rest });
    const { ownedWithMessages } = await fixture.commit(
      batch(worker, [
        transitionOf(written, {}),
        transitionOf(drainedAll, { drainedInboxIds: await rows(drainedAll, 2) }),
        transitionOf(drainedSome, { drainedInboxIds: await rows(drainedSome, 1) }),
        transitionOf(parked, { next: park() }),
        transitionOf(ended, { drainedInboxIds: await rows(ended, 2), next: finish() }),
        transitionOf(runWithoutMessages, {}),
      ]),
    );
    expect([...ownedWithMessages].sort()).toEqual([written, drainedSome].map((run) => (run as NewRun).id).sort());
  });

  test("a commit of one event, of one checkpoint, or in a transaction names its run if a message waits", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const cursors = [{ node: "n", cursor: "1", progress: "1" }];
    const appended = await fixture.commitTransition(worker, transition(run.id, { events: [event("a")] }));
    const created = await fixture.commitTransition(worker, transition(run.id, { afterSeq: 1, cursors }));
    const moved = await fixture.commitTransition(worker, transition(run.id, { afterSeq: 1, cursors }));
    expect([appended.ownedWithMessages, created.ownedWithMessages, moved.ownedWithMessages]).toEqual([[], [], []]);

    await fixture.store.send([newMessage(run.id, "1")]);
    expect(
      (await fixture.commitTransition(worker, transition(run.id, { afterSeq: 1, events: [event("b")] })))
        .ownedWithMessages,
    ).toEqual([run.id]);
    expect(
      (await fixture.commitTransition(worker, transition(run.id, { afterSeq: 2, cursors }))).ownedWithMessages,
    ).toEqual([run.id]);
    const otherCursors = [{ node: "other", progress: "1" }];
    expect(
      (await fixture.commitTransition(worker, transition(run.id, { afterSeq: 2, cursors: otherCursors })))
        .ownedWithMessages,
    ).toEqual([run.id]);
    const transaction = await fixture.store.beginTransaction();
    const append = batch(worker, [transition(run.id, { afterSeq: 2, events: [event("c")] })]);
    expect(await transaction.commit(append)).toMatchObject({ kind: "committed", ownedWithMessages: [run.id] });

    const drainedInboxIds = ids(await fixture.inbox(run.id));
    const { ownedWithMessages } = await fixture.commitTransition(
      worker,
      transition(run.id, { afterSeq: 3, events: [event("d")], drainedInboxIds }),
    );
    expect(ownedWithMessages).toEqual([]);
  });

  test("a run does not end before its messages are drained, and nothing of the batch is written", async () => {
    const worker = await fixture.registerWorker();
    const [run, other, parent] = (await fixture.startOwnedRuns(3, worker)) as [NewRun, NewRun, NewRun];
    await fixture.store.send([newMessage(run.id, "early"), newMessage(run.id, "late")]);
    const [early, late] = ids(await fixture.inbox(run.id)) as [number, number];
    const ends = (drainedInboxIds: readonly number[]) =>
      batch(worker, [
        transition(run.id, {
          events: [event("end")],
          messages: [newMessage(parent.id, "done")],
          drainedInboxIds,
          next: finish(),
        }),
        transition(other.id, { events: [event("end")], next: finish() }),
      ]);
    for (const drained of [[], [early]])
      expect(await fixture.store.commit(ends(drained))).toEqual({
        kind: "conflict",
        runId: run.id,
        hasUnreadMessages: true,
      });
    expect(await fixture.run(run.id)).toMatchObject({ status: "running" });
    expect(await fixture.run(other.id)).toMatchObject({ status: "running" });
    expect(await fixture.inbox(parent.id)).toEqual([]);
    expect(await fixture.inbox(run.id)).toHaveLength(2);
    await fixture.commit(ends([early, late]));
    expect(await fixture.run(run.id)).toMatchObject({ status: "completed" });
    expect(await fixture.inbox(run.id)).toEqual([]);
    expect((await fixture.store.send([newMessage(run.id, "later")])).undeliverable).toEqual([run.id]);
  });

  test("a transition's messages reach runs of any owner, and runs without an owner", async () => {
    const [sender, owner] = [await fixture.registerWorker(), await fixture.registerWorker()];
    const [from, also] = (await fixture.startOwnedRuns(2, sender)) as [NewRun, NewRun];
    const runOfOther = await fixture.startOwned(owner);
    const runOfSender = await fixture.startOwned(sender);
    const parked = await fixture.start({ due: { kind: "held" } });
    const ended = await fixture.start();
    await fixture.commitTransition(null, transition(ended.id, { events: [event("end")], next: finish() }));
    const { at } = await fixture.commit(
      batch(sender, [
        transition(from.id, {
          events: [event("send")],
          messages: [runOfOther, parked, ended, runOfSender, parked].map(({ id }, index) =>
            newMessage(id, `from${index}`, "child"),
          ),
        }),
        transition(also.id, { events: [event("end")], next: finish(), messages: [newMessage(parked.id, "also")] }),
      ]),
    );
    expect(await fixture.inbox(runOfOther.id)).toMatchObject([{ kind: "child", data: "from0", at }]);
    expect(await fixture.task(runOfOther.id)).toMatchObject({
      state: "owned",
      owner: owner.workerId,
      pendingMessages: 1,
    });
    expect(await fixture.task(runOfSender.id)).toMatchObject({
      state: "owned",
      owner: sender.workerId,
      pendingMessages: 1,
    });
    const arrived = contents(await fixture.inbox(parked.id));
    expect(arrived.filter((data) => data !== "also")).toEqual(["from1", "from4"]);
    expect(arrived).toContain("also");
    expect(await fixture.task(parked.id)).toMatchObject({ state: "ready", dueAt: at, pendingMessages: 3 });
    expect(await fixture.inbox(ended.id)).toEqual([]);
  });

  test("a client's commit sends messages, too", async () => {
    const from = await fixture.start();
    const to = await fixture.start({ due: { kind: "held" } });
    const messages = [newMessage(to.id, "done")];
    await fixture.commitTransition(
      null,
      transition(from.id, { events: [event("end")], next: finish("canceled"), messages }),
    );
    expect(contents(await fixture.inbox(to.id))).toEqual(["done"]);
    expect(await fixture.task(to.id)).toMatchObject({ state: "ready", pendingMessages: 1 });
  });

  test("five hundred messages of one batch arrive in order", async () => {
    const worker = await fixture.registerWorker();
    const [from, to] = (await fixture.startOwnedRuns(2, worker)) as [NewRun, NewRun];
    const messages = Array.from({ length: 500 }, (_, index) => newMessage(to.id, `${index}`));
    await fixture.commitTransition(worker, transition(from.id, { events: [event("send")], messages }));
    expect(contents(await fixture.inbox(to.id))).toEqual(messages.map(({ data }) => data));
    expect(await fixture.task(to.id)).toMatchObject({ pendingMessages: 500 });
  });
}
