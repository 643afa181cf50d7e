/** The second half of a commit: its statements, once what they depend on has been seen under lock. */

import type { Batch, CursorWrite, Mail, Next, Transition } from "../contract/store.js";
import { packEvents } from "../shared/event-rows.js";
import { taskState } from "../sql/records.js";
import type { Seen } from "./look.js";
import { byKey, forKeys, insert, marks, type Sql, sql, updateEach, type Value } from "./sql.js";

type Moving<K extends Next["kind"]> = { readonly runId: string; readonly next: Extract<Next, { kind: K }> };

/** With the number of events that its log has then. */
type Ending = Moving<"finish"> & { readonly events: number };

/** Everything but the births. `kept` are the runs whose park is refused by mail, `mailed` those that stay and have some. */
export function writeStatements(
  batch: Batch,
  seen: Seen,
  newborn: ReadonlySet<string>,
): { readonly statements: Sql[]; readonly kept: string[]; readonly mailed: string[] } {
  const { at } = seen;
  const { transitions } = batch;
  const sorted = transitions.toSorted((a, b) => (a.runId < b.runId ? -1 : 1));
  const kept: string[] = [];
  const mailed: string[] = [];
  const parks: Moving<"park">[] = [];
  const finishes: Ending[] = [];
  const drained = new Map<string, number>();
  for (const runId of seen.drained.values()) drained.set(runId, (drained.get(runId) ?? 0) + 1);
  const mailLeft = (runId: string) => (seen.tasks.get(runId)?.mail ?? 0) - (drained.get(runId) ?? 0);
  for (const { runId, next, after, events } of transitions) {
    if (next.kind === "finish") finishes.push({ runId, next, events: after + events.length });
    else if (next.kind === "park" && mailLeft(runId) > 0) kept.push(runId);
    else if (next.kind === "park") parks.push({ runId, next });
    else if (batch.fence !== null && mailLeft(runId) > 0) mailed.push(runId);
  }
  const withTask = (runId: string) => seen.tasks.has(runId) || newborn.has(runId);
  const mail = transitions.flatMap((transition) => transition.mail).filter(({ to }) => withTask(to));
  const released = [...new Set(transitions.flatMap(({ release }) => release))].sort();
  const statements = [
    ...drainStatements(drained, seen),
    ...parkTasks(parks, at),
    ...finishTasks(finishes),
    ...mailStatements(mail, at),
    ...releaseStatements(released, at),
    ...eventStatements(sorted, at),
    ...parkRuns(parks, at),
    ...finishRuns(finishes, at),
    ...cursorStatements(sorted, at),
  ];
  if (batch.fence === null) statements.push(...notFresh(transitions));
  return { statements, kept, mailed };
}

export const eventsTable = "pawl_events (run_id, seq, span, type, node, attempt, outcome, data, at)";

/** One row per run: what makes 1,000 steps that finish together cheap. */
export function eventRow({ runId, after, events }: Transition): Value[] {
  const { span, type, node, attempt, outcome, data } = packEvents(events);
  return [runId, after + 1, span, type, node, attempt, outcome, data];
}

function eventStatements(transitions: readonly Transition[], at: number): Sql[] {
  const rows = transitions.flatMap((each) => (each.events.length === 0 ? [] : [[...eventRow(each), at]]));
  return insert(eventsTable, rows);
}

function drainStatements(drained: ReadonlyMap<string, number>, seen: Seen): Sql[] {
  if (drained.size === 0) return [];
  const ids = [...seen.drained.keys()].map(String);
  const counts = [...drained].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    ...updateEach(counts, {
      table: "pawl_tasks",
      key: "run_id",
      keyOf: ([runId]) => runId,
      set: { mail: ["mail - ?", ([, count]) => count] },
    }),
    ...forKeys(ids, (part) => deleteByKey("pawl_inbox", "id", part.map(Number))),
  ];
}

function parkTasks(parks: readonly Moving<"park">[], at: number): Sql[] {
  const dueOf = ({ next: { wakeAt, wakeIn } }: Moving<"park">) => {
    const due = [wakeAt, wakeIn === null ? null : at + wakeIn].filter((instant) => instant !== null);
    return due.length === 0 ? null : Math.min(...due);
  };
  const moving = parks.filter(({ next }) => !next.keepsDue);
  const staying = parks.filter(({ next }) => next.keepsDue).map(({ runId }) => runId);
  const isReady = (park: Moving<"park">) => (dueOf(park) ?? Number.POSITIVE_INFINITY) <= at;
  const blank = "owner = NULL, epoch = NULL, deliveries = 0, fresh = 0";
  const statements = (part: readonly Moving<"park">[], state: number, rank: string) =>
    updateEach(part, {
      table: "pawl_tasks",
      key: "run_id",
      keyOf: ({ runId }) => runId,
      set: {
        due_at: ["?", dueOf],
        // Named only where some park has them: the others' statements stay as short as they are.
        ...(part.some(({ next }) => next.route !== undefined) && {
          workflow: ["COALESCE(?, workflow)", ({ next }) => next.route ?? null],
        }),
        ...(part.some(({ next }) => next.priority !== undefined) && {
          priority: ["COALESCE(?, priority)", ({ next }) => next.priority ?? null],
        }),
      },
      // A rank is made of the priority that was just set.
      also: `${blank}, state = ${state}, rank_no = ${rank}`,
    });
  return [
    ...forKeys(staying, clearFresh),
    ...statements(moving.filter(isReady), taskState.ready, "-priority"),
    ...statements(
      moving.filter((park) => !isReady(park)),
      taskState.parked,
      "0",
    ),
  ];
}

function finishTasks(finishes: readonly Ending[]): Sql[] {
  const ids = finishes.map(({ runId }) => runId);
  return forKeys(ids, (part) => deleteByKey("pawl_tasks", "run_id", part));
}

/** DELETE takes no index hint (see `byKey`). In the order of the key, with a limit, it uses the key all the same. */
const deleteByKey = (table: string, key: string, keys: readonly Value[]): Sql =>
  sql(`DELETE FROM ${table} WHERE ${key} IN (${marks(keys)}) ORDER BY ${key} LIMIT ${keys.length}`, keys);

function parkRuns(parks: readonly Moving<"park">[], at: number): Sql[] {
  return updateEach(parks, {
    table: "pawl_runs",
    key: "id",
    keyOf: ({ runId }) => runId,
    set: {
      status: ["?", ({ next }) => next.status],
      waiting: ["?", ({ next }) => next.waiting],
      started_at: ["COALESCE(started_at, ?)", ({ next }) => (next.startedAt === "now" ? at : next.startedAt)],
    },
  });
}

function finishRuns(finishes: readonly Ending[], at: number): Sql[] {
  return updateEach(finishes, {
    table: "pawl_runs",
    key: "id",
    keyOf: ({ runId }) => runId,
    set: {
      status: ["?", ({ next }) => next.status],
      output: ["?", ({ next }) => next.output],
      error: ["?", ({ next }) => next.error],
      waiting: ["?", ({ events }) => String(events)],
      started_at: ["COALESCE(started_at, ?)", ({ next }) => (next.startedAt === "now" ? at : next.startedAt)],
    },
    also: `hero_key = NULL, finished_at = ${at}`,
  });
}

/** Raises the mail counts and wakes whoever is parked, then stores the messages: the tasks are locked already. */
export function mailStatements(mail: readonly Mail[], at: number): Sql[] {
  if (mail.length === 0) return [];
  const counts = new Map<string, number>();
  for (const { to } of mail) counts.set(to, (counts.get(to) ?? 0) + 1);
  return [
    ...updateEach(
      [...counts].sort(([a], [b]) => (a < b ? -1 : 1)),
      {
        table: "pawl_tasks",
        key: "run_id",
        keyOf: ([runId]) => runId,
        set: { mail: ["mail + ?", ([, count]) => count] },
        // `state` comes last: MySQL assigns from left to right, and the others ask what it was.
        also: ["due_at", "rank_no", "state"].map((column) => `${column} = ${whenParked(column, at)}`).join(", "),
      },
    ),
    ...insert(
      "pawl_inbox (run_id, kind, data, at)",
      mail.map(({ to, kind, data }) => [to, kind, data, at]),
    ),
  ];
}

function whenParked(column: string, at: number): string {
  const ready = { due_at: String(at), rank_no: "-priority", state: String(taskState.ready) }[column];
  return `IF(state = ${taskState.parked}, ${ready}, ${column})`;
}

function releaseStatements(runIds: readonly string[], at: number): Sql[] {
  const set = `due_at = ${at}, rank_no = -priority, state = ${taskState.ready}`;
  return forKeys(runIds, (part) =>
    sql(`UPDATE pawl_tasks ${byKey} SET ${set} WHERE run_id IN (${marks(part)}) AND state = ${taskState.parked}`, part),
  );
}

/** A client that appends to a log without moving the run; owners have cleared `fresh` when they claimed. */
function notFresh(transitions: readonly Transition[]): Sql[] {
  const ids = transitions.flatMap(({ runId, next }) => (next.kind === "keep" ? runId : []));
  return forKeys(ids, clearFresh);
}

const clearFresh = (runIds: readonly string[]): Sql =>
  sql(`UPDATE pawl_tasks ${byKey} SET fresh = 0 WHERE run_id IN (${marks(runIds)})`, runIds);

/** The columns that are given overwrite, the others stay: one statement for each set of columns. */
function cursorStatements(transitions: readonly Transition[], at: number): Sql[] {
  const groups = new Map<string, Value[][]>();
  for (const { runId, cursors } of transitions) {
    for (const write of coalesced(cursors)) {
      const given = [write.cursor !== undefined ? "`cursor`" : "", write.progress !== undefined ? "progress" : ""];
      const columns = given.filter((column) => column !== "").join(",");
      const rows = groups.get(columns) ?? [];
      groups.set(columns, rows);
      rows.push([runId, write.node, write.cursor ?? null, write.progress ?? null, at]);
    }
  }
  return [...groups].flatMap(([columns, rows]) => {
    const updated = [...columns.split(",").filter((column) => column !== ""), "at"];
    const updates = updated.map((column) => `${column} = VALUES(${column})`).join(", ");
    return insert("pawl_cursors (run_id, node, `cursor`, progress, at)", rows, ` ON DUPLICATE KEY UPDATE ${updates}`);
  });
}

function coalesced(cursors: readonly CursorWrite[]): readonly CursorWrite[] {
  if (cursors.length < 2) return cursors;
  const byNode = new Map<string, CursorWrite>();
  for (const write of cursors) byNode.set(write.node, { ...byNode.get(write.node), ...defined(write) });
  return [...byNode.values()];
}

const defined = (write: CursorWrite): CursorWrite =>
  Object.fromEntries(Object.entries(write).filter(([, value]) => value !== undefined)) as unknown as CursorWrite;
