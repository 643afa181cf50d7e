/** Hints: reasons to read again, in this process and, if the store can, in others. Hints may be superfluous, never missing. */
import type { Hint, Store } from "../../store/contract/store.js";
import { batch, delay, event, finish, newMessage, newRun, park, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { creation, endOf, scheduleRow, update } from "./schedule-fixture.js";

type ExpectedHint = { workflow: string } | { messages: string } | { done: string } | { schedules: true };

/** Whether a listener that waits for `expected` would read again after this hint. */
function hintMatches(hint: Hint, expected: ExpectedHint): boolean {
  if (hint.kind === "anything") return true;
  if ("schedules" in expected) return hint.kind === "schedules";
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
    const expectHint = (expected: ExpectedHint) =>
      fixture.waitUntil(`there is a hint about ${JSON.stringify(expected)}`, () =>
        hints.some((hint) => hintMatches(hint, expected)),
      );
    return { hints, expectHint, stop };
  }

  test("a start gives a hint that its workflow is ready", async () => {
    const { expectHint, stop } = watchHints(fixture.store);
    const run = await fixture.start();
    await expectHint({ workflow: run.workflow });
    stop();
  });

  test("a start that is due later gives a hint, too, as workers sleep until the next due time", async () => {
    const { expectHint, stop } = watchHints(fixture.store);
    const soon = await fixture.start({ due: { kind: "in", ms: 60_000 } });
    await expectHint({ workflow: soon.workflow });
    const later = await fixture.start({ due: { kind: "at", ms: (await fixture.store.now()) + 60_000 } });
    await expectHint({ workflow: later.workflow });
    stop();
  });

  test("a message gives a hint, whether it was sent or came with a commit", async () => {
    const worker = await fixture.registerWorker();
    const [first, second] = [await fixture.startOwned(worker), await fixture.startOwned(worker)];
    const { expectHint, stop } = watchHints(fixture.store);
    await fixture.store.send([newMessage(first.id, "x")]);
    await expectHint({ messages: first.id });
    await fixture.commitTransition(
      worker,
      transition(first.id, { events: [event("go")], messages: [newMessage(second.id, "y")] }),
    );
    await expectHint({ messages: second.id });
    stop();
  });

  test("the end of a run gives a hint that it is done", async () => {
    const run = await fixture.start();
    const { expectHint, stop } = watchHints(fixture.store);
    await fixture.commitTransition(null, transition(run.id, { events: [event("end")], next: finish() }));
    await expectHint({ done: run.id });
    stop();
  });

  test("new children, released runs and runs that park for no time give a hint that they are ready", async () => {
    const worker = await fixture.registerWorker();
    const parent = await fixture.startOwned(worker);
    const held = await fixture.start({ due: { kind: "held" } });
    const child = newRun();
    const { hints, expectHint, stop } = watchHints(fixture.store);
    await fixture.commitTransition(worker, transition(parent.id, { events: [event("a")], newChildren: [child] }));
    await expectHint({ workflow: child.workflow });
    hints.length = 0;
    await fixture.commitTransition(
      worker,
      transition(parent.id, { afterSeq: 1, events: [event("b")], releasedChildIds: [held.id] }),
    );
    await expectHint({ workflow: held.workflow });
    hints.length = 0;
    const next = park("pending", { wakeInMs: 0 });
    await fixture.commitTransition(worker, transition(parent.id, { afterSeq: 2, events: [event("c")], next }));
    await expectHint({ workflow: parent.workflow });
    stop();
  });

  test("a run that is parked on a route gives a hint for that route, whether it is due now or later", async () => {
    const worker = await fixture.registerWorker();
    const later = (await fixture.store.now()) + 60_000;
    const { hints, expectHint, stop } = watchHints(fixture.store);
    for (const wake of [{ wakeInMs: 0 }, { wakeInMs: 60_000 }, { wakeAt: later }]) {
      for (const fence of [worker, null]) {
        const { id } = fence === null ? await fixture.start() : await fixture.startOwned(fence);
        const route = uniqueName("route\t");
        hints.length = 0;
        const next = park("waiting", { ...wake, route });
        await fixture.commitTransition(fence, transition(id, { events: [event("w")], next }));
        await expectHint({ workflow: route });
      }
    }
    stop();
  });

  test("the tasks of a deregistered worker give a hint that they are ready", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const { expectHint, stop } = watchHints(fixture.store);
    await fixture.store.deregisterWorker(worker);
    await expectHint({ workflow: run.workflow });
    stop();
  });

  test("a commit in a transaction of the store gives a hint like any other", async () => {
    const run = await fixture.start();
    const { expectHint, stop } = watchHints(fixture.store);
    const transaction = await fixture.store.beginTransaction();
    const ended = transition(run.id, { events: [event("end")], next: finish() });
    expect(await transaction.commit(batch(null, [ended]))).toMatchObject({ kind: "committed" });
    await expectHint({ done: run.id });
    stop();
  });

  test("a schedule that must be looked at gives a hint, and so does the end of a run of a schedule", async () => {
    const { hints, expectHint, stop } = watchHints(fixture.store);
    const row = scheduleRow({ nextAt: 1_000 });
    const starts = [newRun()];
    await fixture.store.schedules.apply({ changes: [creation(row, { starts })] });
    await expectHint({ schedules: true });
    await expectHint({ workflow: starts[0]?.workflow as string });
    for (const fence of [await fixture.registerWorker(), null]) {
      const run = fence === null ? await fixture.start() : await fixture.startOwned(fence);
      hints.length = 0;
      await fixture.commit(batch(fence, [endOf(run.id, row.name)]));
      await expectHint({ schedules: true });
      await expectHint({ done: run.id });
    }
    stop();
  });

  test("a change that is refused or left out gives no hint about schedules", async () => {
    const { hints, expectHint, stop } = watchHints(fixture.store);
    const row = scheduleRow({ nextAt: 1_000 });
    const holder = await fixture.start({ heroKey: uniqueName("hero") });
    const taken = newRun({ heroKey: holder.heroKey });
    const { schedules } = fixture.store;
    expect(await schedules.apply({ changes: [creation(row, { starts: [taken] })] })).toMatchObject({ kind: "refused" });
    expect(await schedules.apply({ changes: [update(row)] })).toMatchObject({ names: new Set() });
    // Hints come in the order of the commits.
    const { workflow } = await fixture.start();
    await expectHint({ workflow });
    expect(hints.some(({ kind }) => kind === "schedules")).toBe(false);
    stop();
  });

  test("a refused batch gives no hint", async () => {
    const { hints, stop } = watchHints(fixture.store);
    await delay(200);
    hints.length = 0;
    const run = newRun();
    const unknownWorker = { workerId: "unknown", epoch: 1 };
    expect(await fixture.store.commit(batch(unknownWorker, [], [run]))).toEqual({ kind: "fenced" });
    await delay(100);
    expect(hints.filter((hint) => hint.kind === "ready" && hint.workflows.includes(run.workflow))).toEqual([]);
    stop();
  });

  test("each watcher gets hints until it stops", async () => {
    const [first, second] = [watchHints(fixture.store), watchHints(fixture.store)];
    const run = await fixture.start();
    await first.expectHint({ workflow: run.workflow });
    await second.expectHint({ workflow: run.workflow });
    first.stop();
    const countAtStop = first.hints.length;
    const next = await fixture.start();
    await second.expectHint({ workflow: next.workflow });
    await delay(100);
    expect(first.hints).toHaveLength(countAtStop);
    second.stop();
    second.stop();
  });

  test("without notifications a store still gives hints about its own commits", async () => {
    const store = await fixture.open({ notify: false });
    const { expectHint, stop } = watchHints(store);
    const run = await fixture.start({}, store);
    await expectHint({ workflow: run.workflow });
    await store.send([newMessage(run.id, "x")]);
    await expectHint({ messages: run.id });
    stop();
  });

  if (!fixture.harness.notifiesAcrossInstances) return;

  test("without notifications a store gets no hints from another instance", async () => {
    const store = await fixture.open({ notify: false });
    const { hints, stop } = watchHints(store);
    await delay(200);
    hints.length = 0;
    await fixture.start();
    await delay(300);
    expect(hints).toEqual([]);
    stop();
  });

  test("commits, messages and ends of another instance give hints", async () => {
    const other = await fixture.openAnother();
    const watcher = watchHints(fixture.store);
    // The watcher may still be connecting; hints that it misses until then do not matter.
    await fixture.waitUntil("the watcher gets hints from the other instance", async () => {
      await fixture.start({}, other);
      await delay(50);
      return watcher.hints.length > 0;
    });
    for (let round = 0; round < 5; round += 1) {
      await delay(50);
      watcher.hints.length = 0;
      const run = await fixture.start({}, other);
      await watcher.expectHint({ workflow: run.workflow });
      watcher.hints.length = 0;
      await other.send([newMessage(run.id, "x")]);
      await watcher.expectHint({ messages: run.id });
      const ended = await fixture.start({}, other);
      await watcher.expectHint({ workflow: ended.workflow });
      await delay(50);
      watcher.hints.length = 0;
      await fixture.commitTransition(null, transition(ended.id, { events: [event("end")], next: finish() }), other);
      await watcher.expectHint({ done: ended.id });
    }
    watcher.stop();
  });

  test("changes of schedules and ends of their runs in another instance give hints", async () => {
    const other = await fixture.openAnother();
    const watcher = watchHints(fixture.store);
    const row = scheduleRow({ nextAt: 1_000 });
    // The watcher may still be connecting; hints that it misses until then do not matter.
    await fixture.waitUntil("the watcher gets hints from the other instance", async () => {
      await fixture.start({}, other);
      await delay(50);
      return watcher.hints.length > 0;
    });
    expect(await other.schedules.apply({ changes: [creation(row)] })).toMatchObject({ names: new Set([row.name]) });
    await watcher.expectHint({ schedules: true });
    const run = await fixture.start({}, other);
    await watcher.expectHint({ workflow: run.workflow });
    watcher.hints.length = 0;
    await fixture.commit(batch(null, [endOf(run.id, row.name)]), other);
    await watcher.expectHint({ done: run.id });
    await watcher.expectHint({ schedules: true });
    watcher.stop();
  });

  test("many ends in one commit of another instance give a hint each", async () => {
    const other = await fixture.openAnother();
    const watcher = watchHints(fixture.store);
    await fixture.waitUntil("the watcher gets hints from the other instance", async () => {
      await fixture.start({}, other);
      await delay(50);
      return watcher.hints.length > 0;
    });
    watcher.hints.length = 0;
    const runs = Array.from({ length: 400 }, () => newRun());
    await fixture.startAll(runs, null, other);
    for (const { workflow } of [runs[0], runs[399]] as typeof runs) await watcher.expectHint({ workflow });
    await delay(100);
    watcher.hints.length = 0;
    const ends = runs.map(({ id }) => transition(id, { events: [event("end")], next: finish() }));
    await fixture.commit(batch(null, ends), other);
    for (const { id } of runs) await watcher.expectHint({ done: id });
    watcher.stop();
  });
}
