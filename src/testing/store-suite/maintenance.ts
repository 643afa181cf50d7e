/** Maintenance: old runs are found and deleted, the backlog is counted, and the tables are audited. */
import type { AgePosition, ChildKey, Fence, NewRun, RunSample } from "../../store/contract/store.js";
import {
  batch,
  byId,
  delay,
  events,
  finish,
  newMessage,
  newRun,
  newRuns,
  park,
  routesOf,
  transition,
  uniqueName,
} from "./builders.js";
import type { Fixture } from "./fixture.js";

export function maintenanceTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  /** Starts and ends these runs, each with two events and a cursor. */
  async function startAndFinish(runs: readonly NewRun[], fence?: Fence): Promise<void> {
    const owner = fence ?? (await fixture.registerWorker());
    await fixture.startAll(
      runs.map((run) => ({ ...run, due: { kind: "owned" as const } })),
      owner,
    );
    const ends = runs.map(({ id }) =>
      transition(id, { events: events(2), next: finish(), cursors: [{ node: "loop", cursor: "7" }] }),
    );
    await fixture.commit(batch(owner, ends));
  }

  test("root runs are listed oldest first, in pages without gaps, and without children", async () => {
    const { maintenance } = fixture.store;
    const workflow = uniqueName("roots");
    const runs = newRuns(7, { workflow });
    await startAndFinish(runs.slice(0, 3));
    await delay(3);
    await fixture.startAll(runs.slice(3));
    await fixture.start({ workflow, parentId: runs[0]?.id as string, parentNode: "n" });
    const now = (await fixture.store.now()) + 1;
    const found: string[] = [];
    for (let after: AgePosition | null = null; ; ) {
      const page = await maintenance.rootRuns({ createdBefore: now, workflow, after, limit: 2 });
      found.push(...page.map(({ id }) => id));
      if (page.length < 2) break;
      after = page[1] as AgePosition;
    }
    expect(found).toEqual([...byId(runs.slice(0, 3)), ...byId(runs.slice(3))].map(({ id }) => id));
    const all = await maintenance.rootRuns({ createdBefore: now, workflow: null, after: null, limit: 1_000 });
    expect(all.filter(({ id }) => found.includes(id)).map(({ id }) => id)).toEqual(found);
    const first = all.find(({ id }) => id === runs[0]?.id);
    expect(first?.finishedAt).toBe((await fixture.run(runs[0]?.id as string)).finishedAt);
    expect(all.find(({ id }) => id === runs[5]?.id)?.finishedAt).toBeNull();
    const createdAt = (await fixture.run(runs[3]?.id as string)).createdAt;
    const older = await maintenance.rootRuns({ createdBefore: createdAt, workflow, after: null, limit: 100 });
    expect(older.map(({ id }) => id)).toEqual(byId(runs.slice(0, 3)).map(({ id }) => id));
  });

  test("lists of root runs and of children tell which runs have failed", async () => {
    const { maintenance } = fixture.store;
    const workflow = uniqueName("failed");
    const worker = await fixture.registerWorker();
    const [failed, canceled, open] = newRuns(3, { workflow, due: { kind: "owned" } }) as [NewRun, NewRun, NewRun];
    const child = newRun({ parentId: open.id, parentNode: "n", due: { kind: "owned" } });
    await fixture.startAll([failed, canceled, open, child], worker);
    const end = (run: NewRun, status: "failed" | "canceled") => transition(run.id, { next: finish(status) });
    await fixture.commit(batch(worker, [end(failed, "failed"), end(canceled, "canceled"), end(child, "failed")]));
    const now = (await fixture.store.now()) + 1;
    const roots = await maintenance.rootRuns({ createdBefore: now, workflow, after: null, limit: 10 });
    expect(new Map(roots.map(({ id, hasFailed }) => [id, hasFailed]))).toEqual(
      new Map([
        [failed.id, true],
        [canceled.id, false],
        [open.id, false],
      ]),
    );
    const children = await maintenance.childRuns([open.id], { after: null, limit: 10 });
    expect(children.map(({ id, hasFailed }) => [id, hasFailed])).toEqual([[child.id, true]]);
  });

  test("children are found by their parents, in pages without gaps", async () => {
    const { maintenance } = fixture.store;
    const [one, two, other] = [await fixture.start(), await fixture.start(), await fixture.start()];
    const childrenOf = (parent: NewRun, howMany: number) =>
      newRuns(howMany, { parentId: parent.id, parentNode: "n", workflow: "child" });
    const children = [...childrenOf(one, 4), ...childrenOf(two, 3)];
    await startAndFinish(children.slice(1));
    await fixture.startAll([children[0] as NewRun, ...childrenOf(other, 2)]);
    const found: string[] = [];
    for (let after: ChildKey | null = null; ; ) {
      const page = await maintenance.childRuns([two.id, one.id], { after, limit: 2 });
      found.push(...page.map(({ id }) => id));
      expect(page.filter(({ finishedAt }) => finishedAt === null).map(({ id }) => id)).toEqual(
        page.filter(({ id }) => id === children[0]?.id).map(({ id }) => id),
      );
      if (page.length < 2) break;
      after = page[1] as ChildKey;
    }
    const byParent = [one, two].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const expected = byParent.flatMap(({ id }) => byId(children.filter(({ parentId }) => parentId === id)));
    expect(found).toEqual(expected.map(({ id }) => id));
    expect(await maintenance.childRuns([], { after: null, limit: 2 })).toEqual([]);
    expect(await maintenance.childRuns([uniqueName("unknown")], { after: null, limit: 2 })).toEqual([]);
  });

  test("ended runs are deleted with all their rows; open runs stay as they are", async () => {
    const { store } = fixture;
    const workflow = uniqueName("deleted");
    const [deleted, stays] = newRuns(2, { workflow }) as [NewRun, NewRun];
    const keyed = newRun({ workflow, startKey: "once" });
    const fence = await fixture.registerWorker();
    await startAndFinish([deleted, stays, keyed], fence);
    const open = await fixture.start({ workflow, startKey: "open" });
    await fixture.claimOne(fence, routesOf(open));
    await fixture.commitTransition(
      fence,
      transition(open.id, { events: events(1), cursors: [{ node: "n", cursor: "1" }] }),
    );
    await store.send([newMessage(open.id, "m")]);
    expect(await store.maintenance.deleteRuns([deleted.id, keyed.id, open.id, uniqueName("unknown")])).toBe(2);
    expect(await store.runsById([deleted.id, keyed.id])).toEqual([]);
    expect(await fixture.log(deleted.id)).toEqual([]);
    expect(await store.cursors(deleted.id)).toEqual([]);
    expect(await fixture.log(stays.id)).toHaveLength(2);
    expect(await store.cursors(stays.id)).toHaveLength(1);
    expect(await fixture.log(open.id)).toHaveLength(1);
    expect(await fixture.inbox(open.id)).toHaveLength(1);
    expect(await store.cursors(open.id)).toHaveLength(1);
    expect(await store.maintenance.deleteRuns([deleted.id, keyed.id])).toBe(0);
    expect(await store.maintenance.deleteRuns([])).toBe(0);
    const again = await fixture.start({ workflow, startKey: "once", input: "2" });
    expect((await fixture.run(again.id)).input).toBe("2");
    const refused = await fixture.commit(batch(null, [], [newRun({ workflow, startKey: "open" })]));
    expect(refused.refused).toHaveLength(1);
  });

  test("more runs than fit into one statement are deleted", async () => {
    const runs = newRuns(1_200);
    await startAndFinish(runs);
    expect(await fixture.store.maintenance.deleteRuns(runs.map(({ id }) => id))).toBe(1_200);
    expect(await fixture.store.runsById(runs.map(({ id }) => id))).toEqual([]);
  });

  test("two instances can delete the same runs at once", async () => {
    const runs = newRuns(100);
    await startAndFinish(runs);
    const ids = runs.map(({ id }) => id);
    const other = await fixture.openAnother();
    await Promise.all([fixture.store.maintenance.deleteRuns(ids), other.maintenance.deleteRuns(ids.toReversed())]);
    expect(await fixture.store.runsById(ids)).toEqual([]);
  });

  test("dead workers are deleted after their last heartbeat is old enough, live workers never", async () => {
    const { store } = fixture;
    const [dead, live] = [await fixture.registerWorker(), await fixture.registerWorker()];
    await store.deregisterWorker(dead);
    const workerIds = async () => (await store.workers()).map(({ id }) => id);
    const heartbeatAt = (await store.workers()).find(({ id }) => id === dead.workerId)?.heartbeatAt as number;
    await store.maintenance.deleteDeadWorkers({ lastHeartbeatBefore: heartbeatAt });
    for (const { workerId } of [dead, live]) expect(await workerIds()).toContain(workerId);
    expect(await store.maintenance.deleteDeadWorkers({ lastHeartbeatBefore: heartbeatAt + 1_000_000 })).toContain(
      dead.workerId,
    );
    expect(await workerIds()).toContain(live.workerId);
    expect(await workerIds()).not.toContain(dead.workerId);
    expect(await store.maintenance.expiredWorkers({ lastHeartbeatBefore: heartbeatAt + 1_000_000 })).toContain(
      live.workerId,
    );
    expect(await store.maintenance.expiredWorkers({ lastHeartbeatBefore: heartbeatAt - 1_000_000 })).not.toContain(
      live.workerId,
    );
    expect((await store.heartbeat(live)).isAlive).toBe(true);
    expect((await store.heartbeat(dead)).isAlive).toBe(false);
  });

  test("samples are the newest runs of a workflow, with their status", async () => {
    const { store } = fixture;
    const workflow = uniqueName("sampled");
    const fence = await fixture.registerWorker();
    const [old] = newRuns(1, { workflow }) as [NewRun];
    await startAndFinish([old], fence);
    await delay(3);
    const since = await store.now();
    const [failed, owned] = [
      newRun({ workflow, due: { kind: "owned" } }),
      newRun({ workflow, due: { kind: "owned" } }),
    ];
    const parked = newRun({ workflow, due: { kind: "owned" } });
    await fixture.startAll([failed, owned, parked], fence);
    await fixture.commit(
      batch(fence, [
        transition(failed.id, { next: finish("failed", { startedAt: since + 5 }) }),
        transition(parked.id, { next: park("paused") }),
      ]),
    );
    const pending = await fixture.start({ workflow });
    await fixture.start();
    const samples = await store.maintenance.runSamples(workflow, { since, limit: 100 });
    expect(samples.map(({ status }) => status).toSorted()).toEqual(["failed", "paused", "pending", "running"]);
    const failedSample = samples.find(({ status }) => status === "failed") as RunSample;
    const { createdAt, startedAt, finishedAt } = await fixture.run(failed.id);
    expect(failedSample).toEqual({ status: "failed", createdAt, startedAt, finishedAt });
    expect(startedAt).toBe(since + 5);
    expect(samples[0]?.createdAt).toBe((await fixture.run(pending.id)).createdAt);
    expect(await store.maintenance.runSamples(workflow, { since: 0, limit: 100 })).toHaveLength(5);
    expect(await store.maintenance.runSamples(workflow, { since: 0, limit: 2 })).toEqual(samples.slice(0, 2));
    expect(await store.maintenance.runSamples(uniqueName("none"), { since: 0, limit: 2 })).toEqual([]);
  });

  test("the backlog counts ready and overdue tasks per route and version, not sleeping or owned ones", async () => {
    const { store } = fixture;
    const [one, two] = [uniqueName("backlog-a"), uniqueName("backlog-b")];
    const fence = await fixture.registerWorker();
    const now = await store.now();
    await fixture.startAll([
      newRun({ workflow: one, due: { kind: "at", ms: now - 60_000 } }),
      newRun({ workflow: one }),
      newRun({ workflow: one, version: "2", priority: 5 }),
      newRun({ workflow: one, due: { kind: "in", ms: 1_000_000 } }),
      newRun({ workflow: one, due: { kind: "held" } }),
      newRun({ workflow: two, due: { kind: "in", ms: 1_000_000 } }),
      newRun({ workflow: two, version: "late", due: { kind: "in", ms: 20 } }),
      newRun({ workflow: two, version: "later", due: { kind: "in", ms: 1_000_000 } }),
    ]);
    const owned = newRuns(2, { workflow: two, due: { kind: "owned" } });
    await fixture.startAll(owned, fence);
    await fixture.commitTransition(
      fence,
      transition(owned[0]?.id as string, { next: park("waiting", { wakeInMs: 0, route: `${two}\tq` }) }),
    );
    await delay(25);
    const ofTheseRoutes = <T extends { readonly route: string }>(all: readonly T[]) =>
      all.filter(({ route }) => route.startsWith(one) || route.startsWith(two));
    const backlog = ofTheseRoutes(await store.maintenance.backlog({ cap: 10_000 }));
    expect(backlog.map(({ route, version, dueCount }) => [route, version, dueCount])).toEqual([
      [one, "", 2],
      [one, "2", 1],
      [two, "late", 1],
      [`${two}\tq`, "", 1],
    ]);
    expect(backlog[0]?.oldestDueAt).toBe(now - 60_000);
    expect(backlog[2]?.oldestDueAt).toBeGreaterThanOrEqual(now + 20);
    expect(backlog.every(({ isCapped }) => !isCapped)).toBe(true);
  });

  test("a long backlog is counted up to a cap, and its oldest task is found whatever its priority", async () => {
    const { store } = fixture;
    const [one, two] = [uniqueName("due"), uniqueName("due")];
    const now = await store.now();
    const due = (ago: number) => ({ due: { kind: "at", ms: now - ago } }) as const;
    await fixture.startAll([
      newRun({ workflow: one, priority: 9, ...due(1_000) }),
      newRun({ workflow: one, priority: 5, ...due(2_000) }),
      newRun({ workflow: one, priority: 5, ...due(3_000) }),
      newRun({ workflow: one, priority: 1, ...due(9_000) }),
      newRun({ workflow: one, priority: -1, ...due(4_000) }),
      newRun({ workflow: two, ...due(5_000) }),
      newRun({ workflow: two, version: "2", ...due(6_000) }),
      newRun({ workflow: two, version: "3", ...due(6_000) }),
    ]);
    const backlog = (await store.maintenance.backlog({ cap: 2 })).filter(({ route }) => [one, two].includes(route));
    expect(backlog).toEqual([
      { route: one, version: "", dueCount: 2, isCapped: true, oldestDueAt: now - 9_000 },
      { route: two, version: "", dueCount: 1, isCapped: false, oldestDueAt: now - 5_000 },
      { route: two, version: "2", dueCount: 1, isCapped: false, oldestDueAt: now - 6_000 },
      { route: two, version: "3", dueCount: 1, isCapped: false, oldestDueAt: now - 6_000 },
    ]);
    expect((await store.maintenance.backlog({ cap: 5 })).find(({ route }) => route === one)).toMatchObject({
      dueCount: 5,
      isCapped: false,
    });
  });

  test("the routes of live and dead workers are listed", async () => {
    const { store } = fixture;
    const [workflow, other] = [uniqueName("route"), uniqueName("route")];
    const dead = await fixture.registerWorker({ routes: [{ workflow, version: "" }] });
    await fixture.registerWorker({ routes: [{ workflow: other, version: "2" }], leaseMs: 12_345 });
    await store.deregisterWorker(dead);
    const workers = (await store.maintenance.workerRoutes()).filter(({ routes }) =>
      routes.some((route) => route.workflow === workflow || route.workflow === other),
    );
    expect(workers.toSorted((a, b) => Number(a.live) - Number(b.live))).toMatchObject([
      { routes: [{ workflow, version: "" }], live: false },
      { routes: [{ workflow: other, version: "2" }], live: true, leaseMs: 12_345 },
    ]);
  });

  test("parents of due, unowned children on a route are listed, unless they are paused or have messages", async () => {
    const { store } = fixture;
    const [route, other] = [uniqueName("waited"), uniqueName("waited")];
    const fence = await fixture.registerWorker();
    const parents = byId(newRuns(6, { due: { kind: "owned" } }));
    await fixture.startAll(parents, fence);
    const [two, late, sleeping, owned, paused, withMessage] = parents.map(({ id }) => id) as [string, ...string[]];
    const child = (parentId: string | undefined, rest: Partial<NewRun> = {}) =>
      newRun({ workflow: route, parentId: parentId as string, parentNode: "n", ...rest });
    await fixture.startAll([
      child(two),
      child(two),
      child(two, { workflow: other }),
      child(late, { due: { kind: "in", ms: 5 } }),
      child(sleeping, { due: { kind: "in", ms: 1_000_000 } }),
      child(paused),
      child(withMessage),
      newRun({ workflow: route }),
    ]);
    await fixture.startAll([child(owned, { due: { kind: "owned" } })], fence);
    await fixture.commitTransition(fence, transition(paused as string, { next: park("paused") }));
    await store.send([newMessage(withMessage as string, "{}")]);
    await delay(10);
    const findParents = (routes: readonly string[], limit = 100) => store.maintenance.parentsWaitingFor(routes, limit);
    expect(await findParents([route])).toEqual([
      { parentId: two, route },
      { parentId: late, route },
    ]);
    expect(await findParents([route], 1)).toEqual([{ parentId: two, route }]);
    expect(await findParents([other])).toEqual([{ parentId: two, route: other }]);
    expect(await findParents([route, other])).toHaveLength(3);
    expect(await findParents([])).toEqual([]);
  });

  test("all workflows are listed by name", async () => {
    const names = [uniqueName("list-b"), uniqueName("list-a")];
    await fixture.store.registerWorkflows(
      names.map((name) => ({ name, queue: "q", version: null, signature: null, graph: null })),
    );
    const all = await fixture.store.maintenance.workflows();
    const listed = all.map(({ name }) => name);
    expect(listed).toEqual(listed.toSorted((a, b) => (a < b ? -1 : 1)));
    for (const name of names)
      expect(all.find((workflow) => workflow.name === name)).toEqual(await fixture.store.workflow(name));
  });

  test("an audit lists every run with its task, its messages and the length of its log, in pages without gaps", async () => {
    const { audit } = fixture.store.maintenance;
    const [ended, open] = newRuns(2) as [NewRun, NewRun];
    await startAndFinish([ended]);
    await fixture.start({ ...open, due: { kind: "held" } });
    await fixture.store.send([newMessage(open.id, "a"), newMessage(open.id, "b")]);
    const seen: string[] = [];
    for (let after: string | null = null; ; ) {
      const page = await audit.runs({ after, limit: 2 });
      seen.push(...page.map(({ id }) => id));
      if (page.length < 2) break;
      after = (page[1] as { readonly id: string }).id;
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen).toContain(ended.id);
    expect(seen).toContain(open.id);
    const byIds = await audit.runsById([open.id, ended.id, newRun().id]);
    expect(byIds.length).toBe(2);
    expect(byIds.find(({ id }) => id === ended.id)).toMatchObject({
      status: "completed",
      task: null,
      inboxRows: 0,
      lastEventSeq: 2,
    });
    expect(byIds.find(({ id }) => id === open.id)).toMatchObject({
      status: "pending",
      task: { route: open.workflow, version: "", state: "ready", owner: null, deliveries: 0, pendingMessages: 2 },
      inboxRows: 2,
      lastEventSeq: 0,
      finishedAt: null,
    });
  });

  test("an audit finds no row of this store without its run", async () => {
    await startAndFinish(newRuns(3));
    const { audit } = fixture.store.maintenance;
    for (const table of ["tasks", "events", "inbox", "cursors"] as const) {
      expect(await audit.orphanedRunIds(table, { after: null, limit: 100 })).toEqual([]);
    }
  });
}
