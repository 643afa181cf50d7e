/** Logs: events are numbered without a gap however they are packed, are read in pages or whole, and keep every text. */
import { batch, event, events, eventTypes, finish, newId, newRuns, transition } from "./builders.js";
import type { Fixture } from "./fixture.js";

const mebibyte = 1024 * 1024;

/** Encoded awkward values, and awkward text that the encoder does not escape. */
const awkwardTexts = [
  "",
  " ",
  "null",
  JSON.stringify("\ud800 alone, \udfff too"),
  JSON.stringify("\u0000 and \u001f"),
  '{"__proto__":{"a":1},"constructor":"\u2028\u2029"}',
  "emoji 🪝👩‍👩‍👧 and ẞ, 漢字, \u202e",
  "quotes ' \" ` \\ \\' %s %% _ ; -- /* */ $1 ? :name {}",
  "line\nfeeds\r\nand\ttabs",
  "trailing spaces   ",
];

export function logTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  test("events are numbered from 1 without a gap, and have the time of their commit", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const first = await fixture.commitTransition(worker, transition(run.id, { afterSeq: 0, events: [event("a")] }));
    const second = await fixture.commitTransition(worker, transition(run.id, { afterSeq: 1, events: events(3, "b") }));
    await fixture.commitTransition(worker, transition(run.id, { afterSeq: 4 }));
    const third = await fixture.commitTransition(worker, transition(run.id, { afterSeq: 4, events: events(2, "c") }));
    const log = await fixture.log(run.id);
    expect(log.map(({ seq, type, at }) => [seq, type, at])).toEqual([
      [1, "a", first.at],
      [2, "b1", second.at],
      [3, "b2", second.at],
      [4, "b3", second.at],
      [5, "c1", third.at],
      [6, "c2", third.at],
    ]);
    expect(second.at).toBeGreaterThanOrEqual(first.at);
  });

  test("an event's columns come back, alone and packed with others", async () => {
    const worker = await fixture.registerWorker();
    const full = event("step.completed", { node: "send/é", attempt: 3, outcome: "ok", data: '{"a":1}' });
    const zero = event("", { node: "", attempt: 0, outcome: "", data: "" });
    const bare = event("bare");
    const alone = await fixture.startOwned(worker);
    for (const [afterSeq, single] of [full, zero, bare].entries()) {
      await fixture.commitTransition(worker, transition(alone.id, { afterSeq, events: [single] }));
    }
    const packed = await fixture.startOwned(worker);
    await fixture.commitTransition(worker, transition(packed.id, { events: [full, zero, bare] }));
    for (const { id } of [alone, packed]) {
      const log = await fixture.log(id);
      expect(log.map(({ seq: _, at: __, ...columns }) => columns)).toEqual([full, zero, bare]);
    }
  });

  test("a page starts after any event and has any length, also inside packed rows", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    let afterSeq = 0;
    for (const howMany of [1, 4, 1, 7, 2]) {
      await fixture.commitTransition(
        worker,
        transition(run.id, { afterSeq, events: events(howMany, `from${afterSeq}-`) }),
      );
      afterSeq += howMany;
    }
    const whole = await fixture.log(run.id);
    expect(whole.map(({ seq }) => seq)).toEqual(Array.from({ length: 15 }, (_, index) => index + 1));
    for (let from = 0; from <= 16; from += 1) {
      for (const limit of [1, 2, 3, 5, 15, 100]) {
        const page = await fixture.store.log(run.id, { after: from, limit });
        expect(page, `after ${from}, limit ${limit}`).toEqual(whole.slice(from, from + limit));
      }
    }
  });

  test("the whole logs of many runs are read at once", async () => {
    const worker = await fixture.registerWorker();
    const runs = newRuns(120, { due: { kind: "owned" } });
    await fixture.startAll(runs, worker);
    const longer = runs.slice(0, 100);
    await fixture.commit(
      batch(
        worker,
        longer.map(({ id }, index) => transition(id, { events: events(1 + (index % 3), `${id}-`) })),
      ),
    );
    await fixture.commit(
      batch(
        worker,
        longer.map(({ id }, index) => transition(id, { afterSeq: 1 + (index % 3), events: [event(`${id}-end`)] })),
      ),
    );
    const logs = await fixture.store.logs([...runs.map(({ id }) => id), newId()]);
    for (const [index, { id }] of runs.entries()) {
      const expected = index < 100 ? [...events(1 + (index % 3), `${id}-`).map(({ type }) => type), `${id}-end`] : [];
      const log = logs.get(id) ?? [];
      expect(eventTypes(log)).toEqual(expected);
      expect(log.map(({ seq }) => seq)).toEqual(expected.map((_, at) => at + 1));
    }
    expect((await fixture.store.logs([])).size).toBe(0);
  });

  test("the log of an ended run can be read", async () => {
    const run = await fixture.start();
    await fixture.commitTransition(null, transition(run.id, { events: events(2), next: finish() }));
    expect(eventTypes(await fixture.log(run.id))).toEqual(["event1", "event2"]);
    expect(await fixture.store.log(newId(), { after: 0, limit: 10 })).toEqual([]);
  });

  test("every text comes back as it was: inputs, events, messages, cursors, outputs", async () => {
    const worker = await fixture.registerWorker();
    for (const text of awkwardTexts) {
      const run = await fixture.startOwned(worker, { input: text });
      await fixture.store.send([{ to: run.id, kind: text.slice(0, 20), data: text }]);
      const awkward = event("one", { data: text, outcome: text });
      const cursors = [{ node: "n", cursor: text, progress: text }];
      await fixture.commitTransition(worker, transition(run.id, { events: [awkward], cursors }));
      await fixture.commitTransition(worker, transition(run.id, { afterSeq: 1, events: [awkward, awkward] }));
      expect((await fixture.log(run.id)).map(({ data, outcome }) => [data, outcome])).toEqual(
        Array.from({ length: 3 }, () => [text, text]),
      );
      expect(await fixture.inbox(run.id)).toMatchObject([{ kind: text.slice(0, 20), data: text }]);
      expect(await fixture.store.cursors(run.id)).toMatchObject([{ cursor: text, progress: text }]);
      const drainedInboxIds = (await fixture.inbox(run.id)).map(({ id }) => id);
      const ended = transition(run.id, {
        afterSeq: 3,
        drainedInboxIds,
        next: finish("failed", { output: text, error: text }),
      });
      await fixture.commitTransition(worker, ended);
      expect(await fixture.run(run.id)).toMatchObject({ input: text, output: text, error: text });
    }
  });

  test("a payload of one mebibyte comes back, alone and packed", async () => {
    const worker = await fixture.registerWorker();
    const ascii = "x".repeat(mebibyte);
    const wide = "🪝".repeat(mebibyte / 4);
    const run = await fixture.startOwned(worker, { input: ascii });
    await fixture.store.send([{ to: run.id, kind: "large", data: wide }]);
    await fixture.commitTransition(worker, transition(run.id, { events: [event("large", { data: wide })] }));
    const two = [event("large", { data: ascii }), event("large", { data: wide })];
    await fixture.commitTransition(worker, transition(run.id, { afterSeq: 1, events: two }));
    const payloads = (await fixture.log(run.id)).map(({ data }) =>
      data === wide ? "wide" : data === ascii ? "ascii" : "",
    );
    expect(payloads).toEqual(["wide", "ascii", "wide"]);
    expect((await fixture.run(run.id)).input === ascii).toBe(true);
    expect((await fixture.inbox(run.id))[0]?.data === wide).toBe(true);
    const drainedInboxIds = (await fixture.inbox(run.id)).map(({ id }) => id);
    await fixture.commitTransition(
      worker,
      transition(run.id, { afterSeq: 3, drainedInboxIds, next: finish("completed", { output: wide }) }),
    );
    expect((await fixture.run(run.id)).output === wide).toBe(true);
  });

  test("a thousand events of one commit are read in pages", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    await fixture.commitTransition(worker, transition(run.id, { events: events(1_000) }));
    await fixture.commitTransition(worker, transition(run.id, { afterSeq: 1_000, events: events(1_000) }));
    const seqs: number[] = [];
    while (seqs.length <= 2_000) {
      const page = await fixture.store.log(run.id, { after: seqs.length, limit: 300 });
      if (page.length === 0) break;
      seqs.push(...page.map(({ seq }) => seq));
    }
    expect(seqs).toEqual(Array.from({ length: 2_000 }, (_, index) => index + 1));
  });
}
