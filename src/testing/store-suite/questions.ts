/** The bounded reads behind lists, counts, errors and figures. */
import type { MinuteFigures, NewRun, RunQuery, RunRecord, Store, Transition } from "../../store/contract/store.js";
import {
  batch,
  delay,
  event,
  events,
  finish,
  newId,
  newRun,
  newRuns,
  park,
  transition,
  uniqueName,
} from "./builders.js";
import type { Fixture } from "./fixture.js";
import { errorText, fingerprintOfNumber, pauseNote, readAllPages } from "./run-pages.js";

export function questionTests(fixture: Fixture): void {
  const { test, expect } = fixture;
  const answers = () => fixture.store.maintenance.questions;

  /** Reads all pages, with few runs examined for each, and expects each run once, in this order. */
  async function expectListed(
    query: Partial<RunQuery>,
    runs: readonly { readonly id: string }[],
    store: Store = fixture.store,
  ): Promise<void> {
    for (const [limit, maxExamined] of [
      [100, 1_000],
      [2, 1_000],
      [2, 3],
      [1, 1],
    ] as const) {
      const found = await readAllPages(store, { ...query, limit, maxExamined });
      const about = `${JSON.stringify(query)}, limit ${limit}, maxExamined ${maxExamined}`;
      expect(
        found.map(({ id }) => id),
        about,
      ).toEqual(runs.map(({ id }) => id));
    }
  }

  const newestFirst = (runs: readonly RunRecord[]) =>
    [...runs].sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));
  const byIdDescending = <T extends { readonly id: string }>(runs: readonly T[]) =>
    [...runs].sort((a, b) => (a.id < b.id ? 1 : -1));
  const readRuns = (runs: readonly { readonly id: string }[], store = fixture.store) =>
    store.runsById(runs.map(({ id }) => id));

  /** Two runs of each status, of one workflow, all created in the same millisecond. */
  async function startTwoOfEachStatus() {
    const workflow = uniqueName("listed");
    const worker = await fixture.registerWorker();
    const ofStatus = (status: Partial<NewRun>) => newRuns(2, { workflow, ...status });
    const statuses = ["pending", "running", "waiting", "paused", "completed", "failed", "canceled"] as const;
    const runs = Object.fromEntries(
      statuses.map((status) => [status, ofStatus(status === "running" ? { due: { kind: "owned" } } : {})]),
    ) as Record<(typeof statuses)[number], NewRun[]>;
    await fixture.startAll(Object.values(runs).flat(), worker);
    const moves = {
      waiting: park("waiting"),
      paused: park("paused", { waiting: pauseNote(1) }),
      completed: finish("completed", { output: "1" }),
      failed: finish("failed", { error: errorText(1) }),
      canceled: finish("canceled"),
    } as const;
    const transitions = Object.entries(moves).flatMap(([status, next]) =>
      runs[status as keyof typeof moves].map(({ id }): Transition => transition(id, { events: [event("x")], next })),
    );
    await fixture.commit(batch(null, transitions));
    return { workflow, worker, runs };
  }

  test("runs of each status are listed page by page, open ones by id and ended ones by age", async () => {
    const { workflow, runs } = await startTwoOfEachStatus();
    for (const status of ["pending", "running", "waiting"] as const)
      await expectListed({ workflow, status }, byIdDescending(runs[status]));
    for (const status of ["paused", "completed", "failed", "canceled"] as const)
      await expectListed({ workflow, status }, newestFirst(await readRuns(runs[status])));
    const open = [...runs.pending, ...runs.running, ...runs.waiting, ...runs.paused];
    await expectListed({ workflow, active: true }, byIdDescending(open));
    const ended = await readRuns([...runs.completed, ...runs.failed, ...runs.canceled]);
    await expectListed({ workflow, active: false }, newestFirst(ended));
    await expectListed({ workflow }, newestFirst([...(await readRuns(open)), ...ended]));
    await expectListed({ workflow, active: true, status: "completed" }, []);
    const [running] = await readAllPages(fixture.store, { workflow, status: "running", limit: 9, maxExamined: 99 });
    expect(running).toEqual(await fixture.run(running?.id ?? ""));
  });

  test("a paused run that a worker owns is running", async () => {
    const { workflow, worker, runs } = await startTwoOfEachStatus();
    const [first, second] = runs.paused as [NewRun, NewRun];
    const next = park("paused", { waiting: pauseNote(1), wakeInMs: 0 });
    await fixture.commitTransition(null, transition(first.id, { afterSeq: 1, events: [event("w")], next }));
    await fixture.claim(worker, [{ workflow, version: "" }]);
    await expectListed({ workflow, status: "paused" }, [second]);
    const found = await readAllPages(fixture.store, { workflow, status: "running", limit: 9, maxExamined: 99 });
    expect(found.map(({ id }) => id)).toContain(first.id);
  });

  test("runs are listed by hero, parent, start key, tag and time, in pages", async () => {
    let now = 5_000_000;
    const store = await fixture.open({ clock: () => now });
    const workflow = uniqueName("filtered");
    const [heroId, parentId, startKey, tag] = [uniqueName("hero"), newId(), uniqueName("key"), uniqueName("tag")];
    const fields: Partial<NewRun>[] = [
      { heroType: "User", heroId },
      { parentId, parentNode: "n" },
      { tags: ["other", tag] },
    ];
    const started: NewRun[][] = [[], [], []];
    for (let round = 0; round < 4; round += 1) {
      // Every second round has the time of the one before.
      now += (round % 2) * 1_000;
      for (const [index, own] of fields.entries()) {
        const runs = newRuns(2, { workflow, ...own });
        await fixture.startAll([...runs, newRun({ workflow })], null, store);
        started[index]?.push(...runs);
      }
    }
    const keyed = [newRun({ workflow, startKey }), newRun({ startKey })];
    await fixture.startAll([...keyed, newRun({ workflow, startKey: `${startKey} ` })], null, store);
    const [ofHero, children, tagged] = await Promise.all(
      started.map(async (runs) => newestFirst(await readRuns(runs, store))),
    );
    await expectListed({ heroType: "User", heroId }, ofHero ?? [], store);
    await expectListed({ heroType: "User", heroId, active: true }, ofHero ?? [], store);
    await expectListed({ heroType: "Order", heroId }, [], store);
    await expectListed({ parentId }, children ?? [], store);
    await expectListed({ parentId, status: "pending" }, children ?? [], store);
    await expectListed({ workflow, tag }, tagged ?? [], store);
    await expectListed({ workflow, parentId: null, tag }, tagged ?? [], store);
    await expectListed({ workflow, startKey }, keyed.slice(0, 1), store);
    await expectListed({ startKey }, newestFirst(await readRuns(keyed, store)), store);
    const late = (tagged ?? []).filter(({ createdAt }) => createdAt === now);
    await expectListed({ workflow, tag, createdAfter: now }, late, store);
    await expectListed({ workflow, tag, createdBefore: now }, (tagged ?? []).slice(late.length), store);
    await expectListed({ parentId: "no id" }, [], store);
  });

  test("failed and paused runs with the same fingerprint are one list", async () => {
    const workflow = uniqueName("fingerprint");
    const fingerprint = fingerprintOfNumber(77);
    const runs: NewRun[] = [];
    for (let round = 0; round < 3; round += 1) {
      const [failed, paused, other] = newRuns(3, { workflow }) as [NewRun, NewRun, NewRun];
      await fixture.startAll([failed, paused, other]);
      await fixture.commit(
        batch(null, [
          transition(failed.id, { events: [event("x")], next: finish("failed", { error: errorText(77) }) }),
          transition(paused.id, { events: [event("x")], next: park("paused", { waiting: pauseNote(77) }) }),
          transition(other.id, { events: [event("x")], next: finish("failed", { error: errorText(78) }) }),
        ]),
      );
      runs.push(failed, paused);
      await delay(2);
    }
    const records = newestFirst(await readRuns(runs));
    await expectListed({ fingerprint }, records);
    await expectListed({ workflow, fingerprint }, records);
    for (const status of ["failed", "paused"] as const)
      await expectListed(
        { fingerprint, status },
        records.filter((run) => run.status === status),
      );
    await expectListed({ workflow: uniqueName("other"), fingerprint }, []);
    await expectListed({ fingerprint: fingerprintOfNumber(79) }, []);
    // A resumed run has no error any more.
    const resumed = records.find((run) => run.status === "paused") as RunRecord;
    const next = park("waiting", { waiting: "{}" });
    await fixture.commitTransition(null, transition(resumed.id, { afterSeq: 1, events: [event("r")], next }));
    await expectListed(
      { fingerprint },
      records.filter(({ id }) => id !== resumed.id),
    );
  });

  test("a page is cut when enough runs were examined, and the next one begins there", async () => {
    const workflow = uniqueName("cut");
    await fixture.startAll([newRun({ workflow, tags: ["rare"] }), ...newRuns(8, { workflow })]);
    const first = await answers().runs({ workflow, tag: "absent", limit: 5, maxExamined: 4 });
    expect(first).toMatchObject({ runs: [], isCut: true });
    expect(first.next === null).toBe(false);
    const whole = await answers().runs({ workflow, tag: "absent", limit: 5, maxExamined: 100 });
    expect(whole).toEqual({ runs: [], next: null, isCut: false });
  });

  test("runs are counted by workflow and status, up to a cap", async () => {
    const { workflow } = await startTwoOfEachStatus();
    const { counts, cappedStatuses } = await answers().statusCounts({ cap: 10_000 });
    expect(cappedStatuses).toEqual([]);
    const own = counts.filter((count) => count.workflow === workflow);
    expect(own.sort((a, b) => (a.status < b.status ? -1 : 1))).toEqual(
      ["canceled", "failed", "paused", "pending", "running", "waiting"].map((status) => ({
        workflow,
        status,
        count: 2,
      })),
    );
    const capped = await answers().statusCounts({ cap: 1 });
    expect([...capped.cappedStatuses].sort()).toEqual([
      "canceled",
      "failed",
      "paused",
      "pending",
      "running",
      "waiting",
    ]);
    for (const status of ["paused", "failed", "canceled"] as const)
      expect(capped.counts.filter((count) => count.status === status)).toEqual([{ workflow, status, count: 1 }]);
  });

  test("an open run is counted for its workflow also while its task has another route", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    const { workflow } = run;
    const next = park("waiting", { route: `${workflow}\tqueue` });
    await fixture.commitTransition(worker, transition(run.id, { events: [event("x")], next }));
    const { counts } = await answers().statusCounts({ cap: 10_000 });
    expect(counts.filter((count) => count.workflow.startsWith(workflow))).toEqual([
      { workflow, status: "waiting", count: 1 },
    ]);
    await expectListed({ workflow, status: "waiting" }, [run]);
    await expectListed({ workflow, active: true }, [run]);
  });

  test("errors are grouped by workflow, fingerprint and status, up to a cap", async () => {
    const [one, two] = [uniqueName("errors"), uniqueName("errors")];
    const failed: NewRun[] = [];
    let recentSince = 0;
    for (const workflow of [one, one, two]) {
      const runs = newRuns(2, { workflow }) as [NewRun, NewRun];
      await delay(2);
      recentSince = await fixture.store.now();
      await fixture.startAll(runs);
      await fixture.commit(
        batch(null, [
          transition(runs[0].id, { events: [event("x")], next: finish("failed", { error: errorText(5) }) }),
          transition(runs[1].id, { events: [event("x")], next: finish("failed", { error: '{"name":"Old"}' }) }),
        ]),
      );
      failed.push(runs[0]);
    }
    const paused = await fixture.start({ workflow: two });
    const next = park("paused", { waiting: pauseNote(5) });
    await fixture.commitTransition(null, transition(paused.id, { events: [event("x")], next }));
    const { groups, cappedStatuses } = await answers().errorGroups({ cap: 10_000, recentSince });
    expect(cappedStatuses).toEqual([]);
    const [first, second, third] = await readRuns(failed);
    const own = groups.filter(({ workflow }) => workflow === one || workflow === two);
    const fingerprint = fingerprintOfNumber(5);
    const ofOne = own.find(({ workflow }) => workflow === one);
    expect(ofOne).toMatchObject({ fingerprint, status: "failed", count: 2, recentCount: 0, latestRunId: second?.id });
    expect(ofOne).toMatchObject({ firstCreatedAt: first?.createdAt, lastCreatedAt: second?.createdAt });
    const ofTwo = own.filter(({ workflow }) => workflow === two).sort((a, b) => (a.status < b.status ? -1 : 1));
    expect(ofTwo).toMatchObject([
      { fingerprint, status: "failed", count: 1, recentCount: 1, latestRunId: third?.id },
      { fingerprint, status: "paused", count: 1, recentCount: 1, latestRunId: paused.id },
    ]);
    expect(own).toHaveLength(3);
    const capped = await answers().errorGroups({ cap: 1, recentSince });
    expect([...capped.cappedStatuses].sort()).toEqual(["failed", "paused"]);
    expect(capped.groups.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(2);
  });

  test("the number of the last event counts the events that share a row", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.startOwned(worker);
    expect(await answers().lastEventSeq(run.id)).toBe(0);
    await fixture.commitTransition(worker, transition(run.id, { events: events(1) }));
    expect(await answers().lastEventSeq(run.id)).toBe(1);
    await fixture.commitTransition(worker, transition(run.id, { afterSeq: 1, events: events(7) }));
    expect(await answers().lastEventSeq(run.id)).toBe(8);
    expect(await answers().lastEventSeq(newId())).toBe(0);
    expect(await answers().lastEventSeq("no id")).toBe(0);
  });

  test("figures add up, are read by minute, and are deleted", async () => {
    const [one, two] = [uniqueName("a"), uniqueName("b")];
    const zero = { began: 0, completed: 0, failed: 0, canceled: 0, paused: 0 };
    const row = (minute: number, workflow: string, numbers: Partial<MinuteFigures>) => ({
      ...{ minute, workflow, ...zero },
      ...numbers,
    });
    await answers().addFigures([
      row(100, one, { began: 3, completed: 1 }),
      row(100, two, { failed: 2 }),
      row(101, one, { paused: 1 }),
      row(103, one, { canceled: 9_000_000_000 }),
    ]);
    await answers().addFigures([row(100, one, { began: 4, canceled: 5 })]);
    await answers().addFigures([]);
    const added = row(100, one, { began: 7, completed: 1, canceled: 5 });
    const others = [row(100, two, { failed: 2 }), row(101, one, { paused: 1 })];
    expect(await answers().figures({ from: 100, to: 102 })).toEqual([added, ...others]);
    expect(await answers().figures({ from: 103, to: 103 })).toEqual([row(103, one, { canceled: 9_000_000_000 })]);
    expect(await answers().figures({ from: 104, to: 999 })).toEqual([]);
    const together = row(100, one, { began: 7, completed: 1, canceled: 5, paused: 1 });
    const last = row(102, one, { canceled: 9_000_000_000 });
    const buckets = await answers().figures({ from: 100, to: 103, bucketMinutes: 2 });
    expect(buckets).toEqual([together, row(100, two, { failed: 2 }), last]);
    await answers().deleteFigures({ before: 101 });
    expect(await answers().figures({ from: 0, to: 102 })).toEqual([row(101, one, { paused: 1 })]);
  });

  test("figures that several clients add at once add up", async () => {
    const workflow = uniqueName("together");
    const figures = { minute: 500, workflow, began: 1, completed: 2, failed: 3, canceled: 4, paused: 5 };
    const stores = [fixture.store, await fixture.openAnother(), await fixture.openAnother()];
    await Promise.all(
      stores.flatMap((store) => Array.from({ length: 5 }, () => store.maintenance.questions.addFigures([figures]))),
    );
    const sum = { minute: 500, workflow, began: 15, completed: 30, failed: 45, canceled: 60, paused: 75 };
    expect(await answers().figures({ from: 500, to: 500 })).toEqual([sum]);
  });

  test("a run keeps who started it, whether it was started alone or with others", async () => {
    const startedBy = 'Ada "ü" 🪝';
    const alone = await fixture.start({ startedBy });
    const [first, second] = [newRun({ startedBy }), newRun()];
    await fixture.startAll([first, second]);
    expect((await fixture.run(alone.id)).startedBy).toBe(startedBy);
    expect((await fixture.run(first.id)).startedBy).toBe(startedBy);
    expect((await fixture.run(second.id)).startedBy).toBe(undefined);
    const { runs } = await answers().runs({ workflow: alone.workflow, status: "pending", limit: 9, maxExamined: 99 });
    expect(runs.map((run) => run.startedBy)).toEqual([startedBy]);
    const { transactions } = fixture.harness;
    if (transactions === undefined) return;
    const inTransaction = [newRun({ startedBy }), newRun()] as const;
    const caller = await transactions.beginCallerTransaction();
    await fixture.store.startInTransaction(caller.tx, inTransaction);
    await caller.commit();
    expect((await fixture.run(inTransaction[0].id)).startedBy).toBe(startedBy);
    expect((await fixture.run(inTransaction[1].id)).startedBy).toBe(undefined);
  });
}
