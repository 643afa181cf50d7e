/** Rows that were changed, deleted or added by hand: `verify` finds each and reports its kind. */

import { limit, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { childRunId } from "../../src/core/naming/ids.js";
import { newEvent } from "../../src/core/run/event.js";
import { retryParentNode } from "../../src/core/run/lineage.js";
import type { NewEvent, NewRun, NextTaskState, RunRecord } from "../../src/store/contract/store.js";
import { forEachStore, type StoreKind, testDatabase } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { world } from "../support/virtual-worlds.js";
import { type EveryKindOfRun, everyKindOfRun } from "./every-kind-of-run.js";

interface Corruption {
  readonly name: string;
  readonly statements: readonly string[];
  /** The differences that must be found, as "kind id". */
  readonly expected: readonly string[];
  /** Other differences that the same change causes. */
  readonly besides?: readonly string[];
}

const unknownRunId = "01990000-0000-7000-8000-000000000001";
const nobody3 = "01990000-0000-7000-8000-000000000003";
const nobody2 = "01990000-0000-7000-8000-000000000002";
const nobody4 = "01990000-0000-7000-8000-000000000004";

function corruptions({ runs }: EveryKindOfRun): Corruption[] {
  const idsOf = (list: readonly { readonly id: string }[]) =>
    list.map(({ id }) => id) as [string, string, string, string];
  const done = idsOf(runs.done);
  const sleeping = idsOf(runs.sleeping);
  const failed = idsOf(runs.failed);
  const waiting = idsOf(runs.waiting);
  const delayed = idsOf(runs.delayed);
  const crowd = idsOf(runs.crowd);
  const [hero, otherHero] = idsOf(runs.heroes);
  const chains = idsOf(runs.chains);
  const graphs = idsOf(runs.graphs);
  /** Changes the data of a step's events, whether they are rows of their own or share a row with others. */
  const forge = (id: string, from: string, to: string) =>
    `UPDATE pawl_events SET data = replace(data, '${from}', '${to}') WHERE run_id = '${id}'`;
  const childOf = (parent: string, node: string, index = 0) => childRunId(parent, node, index);
  const run = (id: string, change: string) => `UPDATE pawl_runs SET ${change} WHERE id = '${id}'`;
  const task = (id: string, change: string) => `UPDATE pawl_tasks SET ${change} WHERE run_id = '${id}'`;
  const gone = (table: string, id: string) =>
    `DELETE FROM pawl_${table} WHERE ${table === "runs" ? "id" : "run_id"} = '${id}'`;
  const message = (id: string) =>
    `INSERT INTO pawl_inbox (run_id, kind, data, at) VALUES ('${id}', 'signal', '{"name":"x","payload":"1","key":null}', 1)`;
  const held = childOf(crowd[0], "all", 2);
  const heldOfOther = childOf(crowd[1], "all", 1);
  const endedChild = childOf(crowd[2], "done");
  const openChild = childOf(crowd[3], "all", 0);
  const released = childOf(runs.stranded.id, "all", 1);
  return [
    {
      name: "the row of a run that has ended is deleted",
      statements: [gone("runs", done[0])],
      expected: [`log.without_run ${done[0]}`],
      besides: [0, 1, 2].map((index) => `run.parent_missing ${childOf(done[0], "child", index)}`),
    },
    {
      name: "the row of an open run is deleted",
      statements: [gone("runs", delayed[0])],
      expected: [`task.without_run ${delayed[0]}`],
    },
    {
      name: "a child that was to come is deleted with all its rows",
      statements: ["runs", "tasks", "events"].map((table) => gone(table, held)),
      expected: [`child.missing ${crowd[0]}`],
    },
    {
      name: "the last row of a log is missing",
      statements: [`DELETE FROM pawl_events WHERE run_id = '${waiting[0]}' AND type = 'signal.received'`],
      expected: [`log.short ${waiting[0]}`],
    },
    {
      name: "the last row of the log of a run that has ended is missing",
      statements: [
        `DELETE FROM pawl_events WHERE run_id = '${failed[1]}' AND seq = (
          SELECT last FROM (SELECT max(seq) AS last FROM pawl_events WHERE run_id = '${failed[1]}') x)`,
      ],
      expected: [`log.short ${failed[1]}`],
      // The same row held the start of the run.
      besides: [`run.started_at ${failed[1]}`],
    },
    {
      name: "a row in the middle of a log is missing",
      statements: [`DELETE FROM pawl_events WHERE run_id = '${sleeping[0]}' AND seq = 3`],
      expected: [`log.unreadable ${sleeping[0]}`],
    },
    {
      name: "a row of a log claims to hold more events than it does",
      statements: [`UPDATE pawl_events SET span = span + 1 WHERE run_id = '${sleeping[1]}' AND seq = 3`],
      expected: [`log.unreadable ${sleeping[1]}`],
    },
    {
      name: "an event cannot be read",
      statements: [`UPDATE pawl_events SET data = '{' WHERE run_id = '${failed[0]}'`],
      expected: [`log.unreadable ${failed[0]}`],
      // When a row of several events cannot be read, the number of its events is unknown.
      besides: [`log.short ${failed[0]}`],
    },
    {
      name: "a sleeping run is marked as completed",
      statements: [run(sleeping[2], "status = 'completed'")],
      expected: [`run.status ${sleeping[2]}`],
    },
    {
      name: "a completed run is marked as failed",
      statements: [run(done[1], "status = 'failed'")],
      expected: [`run.output ${done[1]}`, `run.error ${done[1]}`],
    },
    {
      name: "a failed run is marked as completed",
      statements: [run(failed[1], "status = 'completed'")],
      expected: [`run.output ${failed[1]}`, `run.error ${failed[1]}`],
    },
    {
      name: "a failed run is marked as canceled",
      statements: [run(failed[2], "status = 'canceled'")],
      expected: [`run.error ${failed[2]}`],
    },
    {
      name: "a child that its parent knows as completed is marked as canceled",
      statements: [run(endedChild, "status = 'canceled', output = NULL")],
      expected: [`child.status ${crowd[2]}`],
    },
    {
      name: "a run that has ended is opened again",
      statements: [run(done[2], "finished_at = NULL")],
      expected: [`run.status ${done[2]}`, `task.missing ${done[2]}`],
    },
    {
      name: "a task is deleted",
      statements: [gone("tasks", delayed[1])],
      expected: [`task.missing ${delayed[1]}`],
    },
    {
      name: "a task belongs to a run that never was",
      statements: [task(delayed[2], `run_id = '${unknownRunId}'`)],
      expected: [`task.without_run ${unknownRunId}`, `task.missing ${delayed[2]}`],
    },
    {
      name: "an open run ends in its row alone",
      statements: [run(waiting[1], "finished_at = 1999999999999, status = 'completed', output = '1', waiting = NULL")],
      expected: [`task.left_over ${waiting[1]}`],
    },
    {
      name: "a child is given to a parent that does not exist",
      statements: [run(heldOfOther, `parent_id = '${unknownRunId}'`)],
      expected: [`run.parent_missing ${heldOfOther}`, `run.parent ${heldOfOther}`],
    },
    {
      name: "a child of a map is made an attempt at a node",
      statements: [run(heldOfOther, "parent_attempt = 1")],
      expected: [`run.parent ${heldOfOther}`],
    },
    {
      name: "the run that a retry goes on for is deleted with all its rows",
      statements: ["runs", "events"].map((table) => gone(table, failed[3])),
      expected: [`run.predecessor_missing ${runs.forked.id}`],
    },
    {
      name: "a task belongs to a worker that is unknown",
      statements: [task(runs.keyed.id, "state = 2, owner = 'ghost', epoch = 1")],
      expected: [`task.owner ${runs.keyed.id}`],
    },
    {
      name: "a task names an owner without being owned",
      statements: [task(runs.imported.id, "owner = 'ghost'")],
      expected: [`task.state ${runs.imported.id}`],
    },
    {
      name: "a signal with a key is in the log twice",
      statements: [
        `INSERT INTO pawl_events (run_id, seq, span, type, node, attempt, outcome, data, at)
          SELECT run_id, seq + 1, span, type, node, attempt, outcome, data, at FROM pawl_events
          WHERE run_id = '${waiting[2]}' AND type = 'signal.received'`,
      ],
      expected: [`log.duplicate_signal_key ${waiting[2]}`],
      besides: [`log.short ${waiting[2]}`],
    },
    {
      name: "the counter of messages is wrong",
      statements: [task(runs.paused.id, "pending_messages = 3")],
      expected: [`task.message_count ${runs.paused.id}`],
    },
    {
      name: "a message waits for a run that has ended",
      statements: [message(runs.canceled.id)],
      expected: [`inbox.without_task ${runs.canceled.id}`],
    },
    {
      name: "a message waits for a run that never was",
      statements: [message(nobody2)],
      expected: [`inbox.without_task ${nobody2}`],
    },
    {
      name: "a cursor belongs to a run that never was",
      statements: [`INSERT INTO pawl_cursors (run_id, node, at) VALUES ('${nobody2}', 'items', 1)`],
      expected: [`cursor.without_run ${nobody2}`],
    },
    {
      name: "the time at which a sleep ends was moved",
      statements: [task(sleeping[3], "due_at = due_at + 1000")],
      expected: [`task.due ${sleeping[3]}`],
    },
    {
      name: "a run that has not begun is not due any more",
      statements: [task(delayed[3], "due_at = NULL")],
      expected: [`task.stuck ${delayed[3]}`],
    },
    {
      name: "a child that was let go is held",
      statements: [task(released, "state = 0, due_at = NULL")],
      expected: [`task.stuck ${runs.stranded.id}`],
    },
    {
      name: "a run with messages is parked",
      statements: [message(waiting[3]), task(waiting[3], "pending_messages = 1")],
      expected: [`task.stuck ${waiting[3]}`],
    },
    {
      name: "a child ends without a message to its parent",
      statements: [
        run(openChild, "finished_at = 1999999999999, status = 'completed', output = '1', waiting = NULL"),
        gone("tasks", openChild),
      ],
      expected: [`child.parent_not_notified ${crowd[3]}`],
    },
    {
      name: "the key of a hero is that of another",
      statements: [run(hero, "hero_key = 'other'")],
      expected: [`run.hero_key ${hero}`],
    },
    {
      name: "tags cannot be read",
      statements: [run(otherHero, "tags = '{'")],
      expected: [`row.unreadable ${otherHero}`],
    },
    {
      name: "an input cannot be read",
      statements: [run(done[3], "input = '{'")],
      expected: [`row.unreadable ${done[3]}`],
    },
    {
      name: "a run began at another time",
      statements: [run(runs.declared.id, "started_at = started_at - 5000")],
      expected: [`run.started_at ${runs.declared.id}`],
    },
    {
      name: "a run ended before its last event",
      statements: [run(runs.built.id, "finished_at = 1000")],
      expected: [`run.finished_at ${runs.built.id}`],
    },
    {
      name: "a task is known by another workflow",
      statements: [task(runs.pausedUnbegun.id, "workflow = 'other'")],
      expected: [`task.route ${runs.pausedUnbegun.id}`],
    },
    {
      name: "what a run waits for is not noted",
      statements: [run(runs.saga.id, "waiting = NULL")],
      expected: [`run.waiting ${runs.saga.id}`],
      besides: [`task.due ${runs.saga.id}`],
    },
    {
      name: "an output of a class's step was changed",
      statements: [forge(chains[0], "genuine draft", "forged draft")],
      expected: [`log.ancestry ${chains[0]}`],
    },
    {
      name: "a class's step claims to be another attempt",
      statements: [
        `UPDATE pawl_events SET attempt = 7 WHERE run_id = '${chains[1]}' AND type = 'step.completed' AND node = 'review'`,
        forge(chains[1], '"review",1,"success"', '"review",7,"success"'),
      ],
      expected: [`log.ancestry ${chains[1]}`],
    },
    {
      name: "a step of a graph says that it was built upon something else",
      statements: [forge(graphs[0], "genuine sand", "forged sand")],
      expected: [`log.ancestry ${graphs[0]}`],
    },
    {
      name: "the last output of a graph was changed",
      statements: [forge(graphs[1], "genuine lens", "forged lens")],
      expected: [`log.ancestry ${graphs[1]}`],
    },
    {
      name: "the hash of a step is missing",
      statements: [
        `UPDATE pawl_events SET data = '{"ms":0,"output":"genuine glass"}' WHERE run_id = '${graphs[2]}' AND node = 'glass'`,
      ],
      expected: [`log.ancestry ${graphs[2]}`],
    },
    {
      name: "a step names another parent",
      statements: [
        `UPDATE pawl_events SET data = '{"hash":"${"0".repeat(64)}","ms":0,"output":"genuine glass"}'
          WHERE run_id = '${graphs[3]}' AND node = 'glass'`,
      ],
      expected: [`log.ancestry ${graphs[3]}`],
    },
    {
      name: "the row of a worker cannot be read",
      statements: ["UPDATE pawl_workers SET routes = '{'"],
      expected: ["row.unreadable null"],
    },
    {
      name: "the row of a workflow cannot be read",
      statements: ["UPDATE pawl_workflows SET graph = '{' WHERE name = 'unserved'"],
      expected: ["row.unreadable null"],
    },
  ];
}

forEachStore(
  (kind) => {
    test("every row that was changed by hand is reported with its kind, and nothing else is reported", async () => {
      const lived = await everyKindOfRun(kind);
      await lived.worker.worker.stop();
      expect((await lived.w.pawl.verify()).differences).toEqual([]);
      const planted = corruptions(lived);
      const sql = await rawSql(lived.url);
      for (const statement of planted.flatMap(({ statements }) => statements)) await sql.query(statement);
      await sql.close();
      const { differences, found } = await lived.w.pawl.verify();
      expect(found).toBe(differences.length);
      const names = differences.map(({ kind: what, runId }) => `${what} ${runId}`);
      for (const { name, expected } of planted) expect(names, name).toEqual(expect.arrayContaining([...expected]));
      const allowed = new Set(planted.flatMap(({ expected, besides = [] }) => [...expected, ...besides]));
      expect(names.filter((one) => !allowed.has(one))).toEqual([]);
      for (const { text, kind: what, log, table } of differences) {
        expect(text, what).toMatch(/^(Run [0-9a-f-]{36}|Worker ".*"|Workflow ".*") .*\.$/s);
        expect([log, table], what).not.toContain(undefined);
      }
    });
  },
  ["sqlite", "postgres", "mysql"],
);

/** One run of each key holds its slot until it ends, and another waits for it. */
async function limitedRuns(kind: StoreKind) {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  const w = await world(kind, database.url);
  const mutex = limit("mutex", { key: "input", concurrency: 1, while: "open" });
  const limited = workflow("limited", { limits: [mutex] }, (ctx, _key: string) => ctx.waitForSignal("go"));
  const { settle } = await w.worker([limited]);
  const pairs: (readonly [string, string])[] = [];
  for (const key of "abcdefgh") {
    const holder = await w.pawl.start(limited, key);
    await settle();
    const waiter = await w.pawl.start(limited, key);
    await settle();
    pairs.push([holder.id, waiter.id]);
  }
  return { w, url: database.url, pairs };
}

forEachStore(
  (kind) => {
    test("corruptions of limits: slots without a holder, classes whose runs are never admitted", async () => {
      const { w, url, pairs } = await limitedRuns(kind);
      expect((await w.pawl.verify()).differences).toEqual([]);
      const [a, b, c, , , , g, h] = pairs as (readonly [string, string])[];
      const slot = (runId: string | undefined, change: string) =>
        `UPDATE pawl_slots SET ${change} WHERE run_id = '${runId}'`;
      const classOf = (key: string) => `WHERE blocked_on = 'mutex\t${key}'`;
      const planted: Corruption[] = [
        {
          name: "a slot is held by a run that does not exist",
          statements: [slot(a?.[0], `run_id = '${unknownRunId}'`)],
          expected: [`slot.left_over ${unknownRunId}`],
        },
        {
          name: "a slot belongs to a worker that does not execute the run",
          statements: [slot(b?.[0], "owner = 'gone', epoch = 1")],
          expected: [`slot.left_over ${b?.[0]}`],
        },
        {
          name: "a slot is held of a limit that does not exist",
          statements: [slot(c?.[0], "lane = 'gone\tc'")],
          expected: [`slot.limit_missing ${c?.[0]}`],
        },
        {
          name: "runs wait for a limit that does not exist",
          statements: [
            `UPDATE pawl_classes SET lanes = replace(lanes, 'mutex', 'gone'), blocked_on = '' ${classOf("d")}`,
          ],
          expected: ["class.limit_missing null"],
        },
        {
          name: "a class is blocked on a key that its runs do not need",
          statements: [`UPDATE pawl_classes SET blocked_on = 'mutex\tzzz' ${classOf("e")}`],
          expected: ["class.blocked_elsewhere null"],
        },
        {
          name: "a class names another workflow",
          statements: [`UPDATE pawl_classes SET route = 'other' ${classOf("f")}`],
          expected: ["class.route null"],
        },
        {
          name: "a class is of another version than its runs",
          statements: [`UPDATE pawl_classes SET version = '9' ${classOf("g")}`],
          expected: [`task.class_missing ${g?.[1]}`],
        },
        {
          name: "a class with a waiting run is deleted",
          statements: [`DELETE FROM pawl_classes ${classOf("h")}`],
          expected: [`task.class_missing ${h?.[1]}`],
        },
      ];
      const sql = await rawSql(url);
      for (const statement of planted.flatMap(({ statements }) => statements)) await sql.query(statement);
      await sql.close();
      const { differences } = await w.pawl.verify();
      const names = differences.map(({ kind: what, runId }) => `${what} ${runId}`);
      for (const { name, expected } of planted) expect(names, name).toEqual(expect.arrayContaining([...expected]));
      expect(names.sort()).toEqual(planted.flatMap(({ expected }) => expected).sort());
      for (const { text, kind: what } of differences)
        expect(text, what).toMatch(/^(Run [0-9a-f-]{36}|Workflow "limited") .*\.$/s);
    });
  },
  ["sqlite", "postgres", "mysql"],
);

const none: readonly never[] = [];

/** Corruptions that are written through the store instead of SQL, so that they also run in memory. */
forEachStore((kind) => {
  test("corruptions that were written through the store are found as well", async () => {
    const { w, runs, worker } = await everyKindOfRun(kind);
    await worker.worker.stop();
    const [asleep, moved, , twice] = runs.sleeping.map(({ id }) => id) as [string, string, string, string];
    const [signaled, silenced] = runs.waiting.map(({ id }) => id) as [string, string];
    const park = async (
      runId: string,
      change: Partial<Extract<NextTaskState, { kind: "park" }>>,
      events: NewEvent[] = [],
    ) => {
      const run = (await w.store.run(runId)) as RunRecord;
      const [task] = await w.store.tasks([runId]);
      const after = (await w.store.logs([runId])).get(runId)?.length ?? 0;
      const as = {
        status: run.status as "waiting",
        waiting: run.waiting,
        startedAt: null,
        wakeAt: task?.dueAt ?? null,
      };
      const next: NextTaskState = { kind: "park", wakeInMs: null, ...as, ...change };
      const lists = { drainedInboxIds: none, newChildren: none, messages: none, releasedChildIds: none, cursors: none };
      const transition = { runId, afterSeq: after, events, next, ...lists };
      expect(await w.store.commit({ fence: null, starts: [], transitions: [transition] })).toMatchObject({
        kind: "committed",
      });
    };
    await park(asleep, { wakeAt: w.clock.read() + 1 });
    await park(moved, { status: "pending" });
    await park(twice, { route: "other" });
    await park(signaled, {}, [newEvent("signal.received", {}, { name: "other", key: "once" })]);
    await park(silenced, { waiting: "{" });
    const fields = { workflow: "waiter", version: "", queue: "waiter", priority: 0, tags: [], startKey: null };
    const kin = { parentId: null, parentNode: null, parentIndex: null, parentAttempt: null };
    const hero = { heroType: null, heroId: null, heroKey: null };
    const born = { ...fields, ...kin, ...hero, input: "1" };
    const starts: NewRun[] = [
      { ...born, id: unknownRunId, due: { kind: "held" } },
      { ...born, id: nobody2, input: "{", heroKey: "other", due: { kind: "now" } },
      { ...born, id: nobody4, due: { kind: "now" }, parentNode: retryParentNode(null, nobody3) },
      { ...born, id: childRunId(nobody3, "x", 0), due: { kind: "now" }, parentId: nobody3, parentNode: "x" },
    ];
    await w.store.commit({ fence: null, transitions: [], starts });
    const { differences } = await w.pawl.verify();
    expect(differences.map(({ kind: what, runId }) => `${what} ${runId}`).sort()).toEqual(
      [
        `task.due ${asleep}`,
        `run.status ${moved}`,
        `task.route ${twice}`,
        `log.duplicate_signal_key ${signaled}`,
        `log.short ${signaled}`,
        `row.unreadable ${silenced}`,
        `run.waiting ${silenced}`,
        `task.stuck ${unknownRunId}`,
        `row.unreadable ${nobody2}`,
        `run.hero_key ${nobody2}`,
        `run.parent_missing ${childRunId(nobody3, "x", 0)}`,
        `run.predecessor_missing ${nobody4}`,
      ].sort(),
    );
  });
});
