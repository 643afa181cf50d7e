/** Hints: reasons to look, in this process and, where the store can, in others. They may say too much, not too little. */
import type { Hint, Store } from "../../store/contract/store.js";
import { batch, delay, event, finish, newMessage, newRun, park, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";

/** Whether somebody who waits for this would look after that hint. */
function hintMatches(hint: Hint, expected: { workflow: string } | { messages: string } | { done: string }): boolean {
  if (hint.kind === "anything") return true;
  if ("workflow" in expected) {
    return hint.kind === "ready" && (hint.workflows.length === 0 || hint.workflows.includes(expected.workflow));
  }
  return "messages" in expected
    ? hint.kind === "messages" && hint.runIds.includes(expected.messages)
    : hint.kind === "done" && hint.runIds.includes(expected.done);
}

export function hintTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  function watchHints(store: Store) {
    const hints: Hint[] = [];
    const stop = store.watch((hint) => hints.push(hint));
    const expectHint = (of: Parameters<typeof hintMatches>[1]) =>
      fixture.waitUntil(`a hint told of ${JSON.stringify(of)}`, () => hints.some((hint) => hintMatches(hint, of)));
    return { hints, told: expectHint, stop };
  }

  test("a start is told as ready", async () => {
    const { told, stop } = watchHints(fixture.store);
    const run = await fixture.start();
    await told({ workflow: run.workflow });
    stop();
  });

  test("a start that is due later is told too, for those who sleep until the next one", async () => {
    const { told, stop } = watchHints(fixture.store);
    const soon = await fixture.start({ due: { kind: "in", ms: 60_000 } });
    await told({ workflow: soon.workflow });
    const later = await fixture.start({ due: { kind: "at", ms: (await fixture.store.now()) + 60_000 } });
    await told({ workflow: later.workflow });
    stop();
  });

  test("a message is told as mail, whether it was sent or came with a commit", async () => {
    const worker = await fixture.registerWorker();
    const [first, second] = [await fixture.startOwned(worker), await fixture.startOwned(worker)];
    const { told, stop } = watchHints(fixture.store);
    await fixture.store.send([newMessage(first.id, "x")]);
    await told({ messages: first.id });
    await fixture.commitTransition(
      worker,
      transition(first.id, { events: [event("go")], messages: [newMessage(second.id, "y")] }),
    );
    await told({ messages: second.id });
    stop();
  });

  test("an end is told as done", async () => {
    const run = await fixture.start();
    const { told, stop } = watchHints(fixture.store);
    await fixture.commitTransition(null, transition(run.id, { events: [event("end")], next: finish() }));
    await told({ done: run.id });
    stop();
  });

  test("children, releases and runs that park for no time are told as ready", async () => {
    const worker = await fixture.registerWorker();
    const parent = await fixture.startOwned(worker);
    const held = await fixture.start({ due: { kind: "held" } });
    const child = newRun();
    const { hints, told, stop } = watchHints(fixture.store);
    await fixture.commitTransition(worker, transition(parent.id, { events: [event("a")], newChildren: [child] }));
    await told({ workflow: child.workflow });
    hints.length = 0;
    await fixture.commitTransition(
      worker,
      transition(parent.id, { afterSeq: 1, events: [event("b")], releasedChildIds: [held.id] }),
    );
    await told({ workflow: held.workflow });
    hints.length = 0;
    const next = park("pending", { wakeInMs: 0 });
    await fixture.commitTransition(worker, transition(parent.id, { afterSeq: 2, events: [event("c")], next }));
    await told({ workflow: parent.workflow });
    stop();
  });

  test("a run that is parked on a route is told as ready there, be it due now or later", async () => {
    const worker = await fixture.registerWorker();
    const later = (await fixture.store.now()) + 60_000;
    const { hints, told, stop } = watchHints(fixture.store);
    for (const wake of [{ wakeInMs: 0 }, { wakeInMs: 60_000 }, { wakeAt: later }]) {
      for (const fence of [worker, null]) {
        const { id } = fence === null ? await fixture.start() : await fixture.startOwned(fence);
        const route = uniqueName("route\t");
        hints.length = 0;
        const next = park("waiting", { ...wake, route });
        await fixture.commitTransition(fence, transition(id, { events: [event("w")], next }));
        await told({ workflow: route });
      }
    }
    stop();
  });

  test("tasks that a worker leaves behind are told as ready", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const { told, stop } = watchHints(fixture.store);
    await fixture.store.deregisterWorker(worker);
    await told({ workflow: run.workflow });
    stop();
  });

  test("a commit in a transaction of the store's is told like any other", async () => {
    const run = await fixture.start();
    const { told, stop } = watchHints(fixture.store);
    const transaction = await fixture.store.beginTransaction();
    const ended = transition(run.id, { events: [event("end")], next: finish() });
    expect(await transaction.commit(batch(null, [ended]))).toMatchObject({ kind: "committed" });
    await told({ done: run.id });
    stop();
  });

  test("a refused batch is no reason to look", async () => {
    const { hints, stop } = watchHints(fixture.store);
    await delay(200);
    hints.length = 0;
    const run = newRun();
    const unknownWorker = { workerId: "nobody", epoch: 1 };
    expect(await fixture.store.commit(batch(unknownWorker, [], [run]))).toEqual({ kind: "fenced" });
    await delay(100);
    expect(hints.filter((hint) => hint.kind === "ready" && hint.workflows.includes(run.workflow))).toEqual([]);
    stop();
  });

  test("each watcher is told, until it stops", async () => {
    const [first, second] = [watchHints(fixture.store), watchHints(fixture.store)];
    const run = await fixture.start();
    await first.told({ workflow: run.workflow });
    await second.told({ workflow: run.workflow });
    first.stop();
    const heard = first.hints.length;
    const next = await fixture.start();
    await second.told({ workflow: next.workflow });
    await delay(100);
    expect(first.hints).toHaveLength(heard);
    second.stop();
    second.stop();
  });

  test("without notifications a store still tells of its own commits", async () => {
    const store = await fixture.open({ notify: false });
    const { told, stop } = watchHints(store);
    const run = await fixture.start({}, store);
    await told({ workflow: run.workflow });
    await store.send([newMessage(run.id, "x")]);
    await told({ messages: run.id });
    stop();
  });

  if (!fixture.harness.notifiesAcrossInstances) return;

  test("without notifications a store does not hear another", async () => {
    const store = await fixture.open({ notify: false });
    const { hints, stop } = watchHints(store);
    await delay(200);
    hints.length = 0;
    await fixture.start();
    await delay(300);
    expect(hints).toEqual([]);
    stop();
  });

  test("commits, messages and ends of another instance are told", async () => {
    const other = await fixture.openAnother();
    const watcher = watchHints(fixture.store);
    // The watcher's connection may be on its way still; what it misses until then is no matter.
    await fixture.waitUntil("the watcher hears the other instance", async () => {
      await fixture.start({}, other);
      await delay(50);
      return watcher.hints.length > 0;
    });
    for (let round = 0; round < 5; round += 1) {
      await delay(50);
      watcher.hints.length = 0;
      const run = await fixture.start({}, other);
      await watcher.told({ workflow: run.workflow });
      watcher.hints.length = 0;
      await other.send([newMessage(run.id, "x")]);
      await watcher.told({ messages: run.id });
      const ended = await fixture.start({}, other);
      await watcher.told({ workflow: ended.workflow });
      await delay(50);
      watcher.hints.length = 0;
      await fixture.commitTransition(null, transition(ended.id, { events: [event("end")], next: finish() }), other);
      await watcher.told({ done: ended.id });
    }
    watcher.stop();
  });

  test("many ends of another instance at once are all told", async () => {
    const other = await fixture.openAnother();
    const watcher = watchHints(fixture.store);
    await fixture.waitUntil("the watcher hears the other instance", async () => {
      await fixture.start({}, other);
      await delay(50);
      return watcher.hints.length > 0;
    });
    watcher.hints.length = 0;
    const runs = Array.from({ length: 400 }, () => newRun());
    await fixture.startAll(runs, null, other);
    for (const { workflow } of [runs[0], runs[399]] as typeof runs) await watcher.told({ workflow });
    await delay(100);
    watcher.hints.length = 0;
    const ends = runs.map(({ id }) => transition(id, { events: [event("end")], next: finish() }));
    await fixture.commit(batch(null, ends), other);
    for (const { id } of runs) await watcher.told({ done: id });
    watcher.stop();
  });
}
