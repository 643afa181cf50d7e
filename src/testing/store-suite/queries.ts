/** Lists of runs: filters, order, pages, and names that a careless collation or pattern would confuse. */
import type { NewRun, RunFilter } from "../../store/contract/store.js";
import {
  batch,
  delay,
  event,
  finish,
  newId,
  newRun,
  newRuns,
  park,
  routesOf,
  transition,
  uniqueName,
} from "./builders.js";
import type { Fixture } from "./fixture.js";

export function queryTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  async function findIds(filter: Partial<RunFilter>): Promise<string[]> {
    return (await fixture.store.runs({ limit: 1_000, ...filter })).map(({ id }) => id);
  }
  const expectSameRuns = (ids: readonly string[], runs: readonly (NewRun | undefined)[]) =>
    expect([...ids].sort()).toEqual(runs.map((run) => run?.id ?? "").sort());

  /** Starts one run of each status, all of one workflow. */
  async function startOneOfEachStatus() {
    const workflow = uniqueName("statuses");
    const worker = await fixture.registerWorker();
    const runs = newRuns(7, { workflow });
    const [pending, running, waiting, paused, completed, failed, canceled] = runs as [NewRun, ...NewRun[]];
    await fixture.startAll(runs.filter((run) => run !== running));
    await fixture.startAll([{ ...(running as NewRun), due: { kind: "owned" } }], worker);
    const moves = [
      [waiting, park("waiting")],
      [paused, park("paused")],
      [completed, finish("completed")],
      [failed, finish("failed")],
      [canceled, finish("canceled")],
    ] as const;
    const transitions = moves.map(([run, next]) => transition(run?.id ?? "", { events: [event("x")], next }));
    await fixture.commit(batch(null, transitions));
    return { workflow, worker, runs: { pending, running, waiting, paused, completed, failed, canceled } };
  }

  test("runs are found by workflow, whose names differ by case, accents and trailing spaces", async () => {
    const name = uniqueName("Names");
    const names = [name, name.toLowerCase(), name.replace("N", "Ñ"), `${name} `, `${name}%`, name.replace("a", "_")];
    const runs = names.map((workflow) => newRun({ workflow }));
    await fixture.startAll(runs);
    for (const run of runs) expectSameRuns(await findIds({ workflow: run.workflow }), [run]);
    expectSameRuns(await findIds({ workflow: uniqueName("none") }), []);
  });

  test("runs are found by their start key, exactly and within their workflow", async () => {
    const [workflow, other] = [uniqueName("keys"), uniqueName("keys")];
    const runs = ["k", "K", "k ", "k%"].map((startKey) => newRun({ workflow, startKey }));
    await fixture.startAll([...runs, newRun({ workflow: other, startKey: "k" }), newRun({ workflow })]);
    for (const run of runs) expectSameRuns(await findIds({ workflow, startKey: run.startKey as string }), [run]);
    expectSameRuns(await findIds({ workflow, startKey: "none" }), []);
  });

  test("runs are found by status; a run that a worker owns is running", async () => {
    const { workflow, runs } = await startOneOfEachStatus();
    for (const [status, run] of Object.entries(runs)) {
      expectSameRuns(await findIds({ workflow, status: status as keyof typeof runs }), [run]);
      expect(await fixture.run(run?.id ?? "")).toMatchObject({ status });
    }
  });

  test("a parked run that is owned again is running, and no longer waiting", async () => {
    const worker = await fixture.registerWorker();
    const run = await fixture.start();
    const { workflow } = run;
    const next = park("waiting", { wakeInMs: 0 });
    await fixture.commitTransition(null, transition(run.id, { events: [event("w")], next }));
    expectSameRuns(await findIds({ workflow, status: "waiting" }), [run]);
    await fixture.claimOne(worker, routesOf(run));
    expectSameRuns(await findIds({ workflow, status: "waiting" }), []);
    expectSameRuns(await findIds({ workflow, status: "running" }), [run]);
    await fixture.store.deregisterWorker(worker);
    expectSameRuns(await findIds({ workflow, status: "running" }), []);
    expectSameRuns(await findIds({ workflow, status: "waiting" }), [run]);
  });

  test("active runs are those that have not ended", async () => {
    const { workflow, runs } = await startOneOfEachStatus();
    expectSameRuns(await findIds({ workflow, active: true }), [runs.pending, runs.running, runs.waiting, runs.paused]);
    expectSameRuns(await findIds({ workflow, active: false }), [runs.completed, runs.failed, runs.canceled]);
    expectSameRuns(await findIds({ workflow, active: true, status: "completed" }), []);
    expect(await findIds({ workflow })).toHaveLength(7);
  });

  test("runs are found by hero", async () => {
    const workflow = uniqueName("heroes");
    const heroes = [
      ["User", "1"],
      ["User", "2"],
      ["user", "1"],
      ["Order", "1"],
    ] as const;
    const runs = heroes.map(([heroType, heroId]) => newRun({ workflow, heroType, heroId }));
    await fixture.startAll([...runs, newRun({ workflow })]);
    expectSameRuns(await findIds({ workflow, heroType: "User", heroId: "1" }), [runs[0]]);
    expectSameRuns(await findIds({ workflow, heroType: "User" }), [runs[0], runs[1]]);
    expectSameRuns(await findIds({ workflow, heroId: "1" }), [runs[0], runs[2], runs[3]]);
    expectSameRuns(await findIds({ workflow, heroType: "user" }), [runs[2]]);
  });

  test("runs are found by tag, exactly, whatever characters it has", async () => {
    const workflow = uniqueName("tags");
    const tags = [
      "plain",
      "Plain",
      "plai",
      "pläin",
      "with space",
      'say "hi"',
      "it's",
      "100%",
      "100",
      "a_b",
      "axb",
      "back\\slash",
      "a,b",
      "[a]",
      "🪝",
      "%",
      "*",
      "?",
      "tab\t",
    ];
    const runs = tags.map((tag) => newRun({ workflow, tags: [tag] }));
    const several = newRun({ workflow, tags: ["first", "second", "plain"] });
    await fixture.startAll([...runs, several, newRun({ workflow })]);
    for (const [index, tag] of tags.entries()) {
      expectSameRuns(await findIds({ workflow, tag }), tag === "plain" ? [runs[index], several] : [runs[index]]);
    }
    expectSameRuns(await findIds({ workflow, tag: "second" }), [several]);
    expectSameRuns(await findIds({ workflow, tag: 'first","second' }), []);
    expectSameRuns(await findIds({ workflow, tag: "," }), []);
    expectSameRuns(await findIds({ workflow, tag: "" }), []);
    expect((await fixture.run(several.id)).tags).toEqual(["first", "second", "plain"]);
  });

  test("runs are found by parent", async () => {
    const [parent, workflow] = [newId(), uniqueName("children")];
    const children = newRuns(3, { parentId: parent, workflow });
    const root = newRun({ workflow });
    await fixture.startAll([...children, newRun({ parentId: newId() }), root]);
    expectSameRuns(await findIds({ parentId: parent }), children);
    expectSameRuns(await findIds({ workflow, parentId: null }), [root]);
  });

  test("several filters apply together", async () => {
    const { workflow, runs } = await startOneOfEachStatus();
    const tagged = await fixture.start({ workflow, tags: ["x"], heroType: "User", heroId: "1" });
    await fixture.start({ workflow, tags: ["x"], heroType: "User", heroId: "2" });
    await fixture.start({ tags: ["x"], heroType: "User", heroId: "1" });
    const filter = { workflow, tag: "x", heroType: "User", heroId: "1", active: true };
    expectSameRuns(await findIds({ ...filter, status: "pending" }), [tagged]);
    expectSameRuns(await findIds({ ...filter, status: "running" }), []);
    expect(await findIds({ workflow, status: "running" })).toEqual([runs.running?.id]);
  });

  test("runs are listed newest first, in pages that neither repeat nor miss a run", async () => {
    const workflow = uniqueName("pages");
    for (let round = 0; round < 5; round += 1) {
      await fixture.startAll(newRuns(5, { workflow }));
      await delay(2);
    }
    const all = await fixture.store.runs({ workflow, limit: 100 });
    expect(all).toHaveLength(25);
    const sorted = [...all].sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));
    expect(all).toEqual(sorted);
    for (const limit of [1, 3, 7, 25]) {
      const paged: typeof sorted = [];
      while (paged.length <= all.length) {
        const last = paged.at(-1);
        const after = last === undefined ? {} : { after: { createdAt: last.createdAt, id: last.id } };
        const page = await fixture.store.runs({ workflow, limit, ...after });
        expect(page.length).toBeLessThanOrEqual(limit);
        if (page.length === 0) break;
        paged.push(...page);
      }
      expect(paged, `in pages of ${limit}`).toEqual(all);
    }
  });

  test("a filtered list has pages, too", async () => {
    const workflow = uniqueName("filtered");
    const runs = newRuns(9, { workflow, tags: ["a"] });
    await fixture.startAll([...runs, ...newRuns(9, { workflow, tags: ["b"] })]);
    const first = await fixture.store.runs({ workflow, tag: "a", limit: 5 });
    const last = first.at(-1) as (typeof first)[number];
    const after = { createdAt: last.createdAt, id: last.id };
    const second = await fixture.store.runs({ workflow, tag: "a", limit: 5, after });
    expectSameRuns(
      [...first, ...second].map(({ id }) => id),
      runs,
    );
  });

  test("runs are found by time of creation, from the first instant up to before the second", async () => {
    let now = 1_000_000;
    const store = await fixture.open({ clock: () => now });
    const workflow = uniqueName("times");
    const runs: NewRun[] = [];
    for (const at of [1_000, 2_000, 3_000]) {
      now = at;
      runs.push(await fixture.start({ workflow }, store));
    }
    const between = async (filter: Partial<RunFilter>) =>
      (await store.runs({ workflow, limit: 10, ...filter })).map(({ id }) => id);
    expect(await between({ createdAfter: 2_000 })).toEqual([runs[2]?.id, runs[1]?.id]);
    expect(await between({ createdBefore: 2_000 })).toEqual([runs[0]?.id]);
    expect(await between({ createdAfter: 1_500, createdBefore: 3_000 })).toEqual([runs[1]?.id]);
    expect(await between({ createdAfter: 3_001 })).toEqual([]);
  });

  test("many runs and tasks are read by their ids", async () => {
    const runs = newRuns(700);
    await fixture.startAll(runs.slice(0, 350));
    await fixture.startAll(runs.slice(350));
    const ids = runs.map(({ id }) => id);
    expectSameRuns(
      (await fixture.store.runsById(ids)).map(({ id }) => id),
      runs,
    );
    expectSameRuns(
      (await fixture.store.tasks(ids)).map(({ runId }) => runId),
      runs,
    );
    expect(await fixture.store.tasks([])).toEqual([]);
    expect(await fixture.store.tasks([newId()])).toEqual([]);
  });
}
