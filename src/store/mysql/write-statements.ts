/** The second half of a commit: the statements that write the batch, computed from the locked snapshot. */

import { classSeparator } from "../../core/naming/route.js";
import type { Batch, CursorWrite, Message, NextTaskState, Transition } from "../contract/store.js";
import { endedSchedulesOf } from "../shared/ended-schedules.js";
import { packEvents } from "../shared/event-rows.js";
import { taskState } from "../sql/records.js";
import type { CommitSnapshot } from "./commit-snapshot.js";
import {
  forcePrimaryKey,
  insertStatements,
  placeholders,
  type Sql,
  sql,
  statementsPerKeyPart,
  updateEach,
  type Value,
} from "./sql.js";

type TransitionTo<K extends NextTaskState["kind"]> = {
  readonly runId: string;
  readonly next: Extract<NextTaskState, { kind: K }>;
};

type FinishingRun = TransitionTo<"finish"> & {
  /** The number of events in its log after this commit. */
  readonly eventCount: number;
};

/**
 * Returns all statements but those that create runs. `notParked` are the runs that are not parked because they have
 * unread messages, `ownedWithMessages` those that stay with their owner and have unread messages.
 */
export function writeStatements(
  batch: Batch,
  snapshot: CommitSnapshot,
  newRunIds: ReadonlySet<string>,
): { readonly statements: Sql[]; readonly notParked: string[]; readonly ownedWithMessages: string[] } {
  const { at } = snapshot;
  const { transitions } = batch;
  const transitionsByRunId = transitions.toSorted((a, b) => (a.runId < b.runId ? -1 : 1));
  const notParked: string[] = [];
  const ownedWithMessages: string[] = [];
  const parks: TransitionTo<"park">[] = [];
  const finishes: FinishingRun[] = [];
  const drainedCounts = new Map<string, number>();
  for (const runId of snapshot.runIdByInboxId.values()) drainedCounts.set(runId, (drainedCounts.get(runId) ?? 0) + 1);
  const messagesLeft = (runId: string) =>
    (snapshot.tasks.get(runId)?.pendingMessages ?? 0) - (drainedCounts.get(runId) ?? 0);
  for (const { runId, next, afterSeq, events } of transitions) {
    if (next.kind === "finish") finishes.push({ runId, next, eventCount: afterSeq + events.length });
    else if (next.kind === "park" && messagesLeft(runId) > 0) notParked.push(runId);
    else if (next.kind === "park") parks.push({ runId, next });
    else if (batch.fence !== null && messagesLeft(runId) > 0) ownedWithMessages.push(runId);
  }
  const hasTask = (runId: string) => snapshot.tasks.has(runId) || newRunIds.has(runId);
  const messages = transitions.flatMap((transition) => transition.messages).filter(({ to }) => hasTask(to));
  const released = [...new Set(transitions.flatMap(({ releasedChildIds }) => releasedChildIds))].sort();
  const statements = [
    ...drainStatements(drainedCounts, snapshot),
    ...parkTaskStatements(parks, at, batch.fence === null),
    ...deleteTaskStatements(finishes),
    ...releaseSlotStatements(parks, finishes),
    ...messageStatements(messages, at),
    ...releaseStatements(released, at),
    ...eventStatements(transitionsByRunId, at),
    ...parkRunStatements(parks, at),
    ...finishRunStatements(finishes, at),
    ...cursorStatements(transitionsByRunId, at),
    ...endedScheduleStatements(endedSchedulesOf(transitions), at),
  ];
  if (batch.fence === null) statements.push(...clearFreshStatements(transitions));
  return { statements, notParked, ownedWithMessages };
}

export const eventsTable = "pawl_events (run_id, seq, span, type, node, attempt, outcome, data, at)";

/** All events of a run are one row, so 1,000 steps of a run that finish together cost one insert. */
export function eventRow({ runId, afterSeq, events }: Transition): Value[] {
  const { span, type, node, attempt, outcome, data } = packEvents(events);
  return [runId, afterSeq + 1, span, type, node, attempt, outcome, data];
}

function eventStatements(transitions: readonly Transition[], at: number): Sql[] {
  const rows = transitions.flatMap((transition) =>
    transition.events.length === 0 ? [] : [[...eventRow(transition), at]],
  );
  return insertStatements(eventsTable, rows);
}

function drainStatements(drainedCounts: ReadonlyMap<string, number>, snapshot: CommitSnapshot): Sql[] {
  if (drainedCounts.size === 0) return [];
  const ids = [...snapshot.runIdByInboxId.keys()].map(String);
  const counts = [...drainedCounts].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    ...updateEach(counts, {
      table: "pawl_tasks",
      key: "run_id",
      keyOf: ([runId]) => runId,
      set: { pending_messages: ["pending_messages - ?", ([, count]) => count] },
    }),
    ...statementsPerKeyPart(ids, (part) => deleteByKey("pawl_inbox", "id", part.map(Number))),
  ];
}

/** A client may park a task that waits in a class. Then the task gets the route back that it had before. */
const baseRoute = `SUBSTRING_INDEX(workflow, '${classSeparator}', 1)`;

function parkTaskStatements(parks: readonly TransitionTo<"park">[], at: number, isByClient: boolean): Sql[] {
  const dueOf = ({ next: { wakeAt, wakeInMs } }: TransitionTo<"park">) => {
    const due = [wakeAt, wakeInMs === null ? null : at + wakeInMs].filter((instant) => instant !== null);
    return due.length === 0 ? null : Math.min(...due);
  };
  const reschedulingParks = parks.filter(({ next }) => !next.keepsDueTime);
  const runIdsKeepingDueTime = parks.filter(({ next }) => next.keepsDueTime).map(({ runId }) => runId);
  const isReady = (park: TransitionTo<"park">) => (dueOf(park) ?? Number.POSITIVE_INFINITY) <= at;
  const releaseAssignments = "owner = NULL, epoch = NULL, deliveries = 0, fresh = 0";
  const statements = (part: readonly TransitionTo<"park">[], state: number, rank: string) =>
    updateEach(part, {
      table: "pawl_tasks",
      key: "run_id",
      keyOf: ({ runId }) => runId,
      set: {
        due_at: ["?", dueOf],
        // These columns are set only if a park changes them, which keeps the usual statement short.
        ...((isByClient || part.some(({ next }) => next.route !== undefined)) && {
          workflow: [`COALESCE(?, ${isByClient ? baseRoute : "workflow"})`, ({ next }) => next.route ?? null],
        }),
        ...(part.some(({ next }) => next.priority !== undefined) && {
          priority: ["COALESCE(?, priority)", ({ next }) => next.priority ?? null],
        }),
      },
      // rank_no is computed from the priority that is set above.
      extraAssignments: `${releaseAssignments}, state = ${state}, rank_no = ${rank}`,
    });
  return [
    ...statementsPerKeyPart(runIdsKeepingDueTime, clearFreshStatement),
    ...statements(reschedulingParks.filter(isReady), taskState.ready, "-priority"),
    ...statements(
      reschedulingParks.filter((park) => !isReady(park)),
      taskState.parked,
      "0",
    ),
  ];
}

/** Parking releases only the slots that the run holds while a worker executes it; the others have no owner. */
function releaseSlotStatements(
  parks: readonly TransitionTo<"park">[],
  finishes: readonly TransitionTo<"finish">[],
): Sql[] {
  const releasingIds = (transitions: readonly (TransitionTo<"park"> | TransitionTo<"finish">)[]) =>
    transitions.filter(({ next }) => next.releasesSlots).map(({ runId }) => runId);
  const deleteSlots = (part: readonly string[]) => `DELETE FROM pawl_slots WHERE run_id IN (${placeholders(part)})`;
  return [
    ...statementsPerKeyPart(releasingIds(parks), (part) => sql(`${deleteSlots(part)} AND owner IS NOT NULL`, part)),
    ...statementsPerKeyPart(releasingIds(finishes), (part) => sql(deleteSlots(part), part)),
  ];
}

function deleteTaskStatements(finishes: readonly FinishingRun[]): Sql[] {
  const ids = finishes.map(({ runId }) => runId);
  return statementsPerKeyPart(ids, (part) => deleteByKey("pawl_tasks", "run_id", part));
}

/** DELETE accepts no index hint (see `forcePrimaryKey`), but with the order of the key and a limit it uses the key. */
const deleteByKey = (table: string, key: string, keys: readonly Value[]): Sql =>
  sql(`DELETE FROM ${table} WHERE ${key} IN (${placeholders(keys)}) ORDER BY ${key} LIMIT ${keys.length}`, keys);

function parkRunStatements(parks: readonly TransitionTo<"park">[], at: number): Sql[] {
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

function finishRunStatements(finishes: readonly FinishingRun[], at: number): Sql[] {
  return updateEach(finishes, {
    table: "pawl_runs",
    key: "id",
    keyOf: ({ runId }) => runId,
    set: {
      status: ["?", ({ next }) => next.status],
      output: ["?", ({ next }) => next.output],
      error: ["?", ({ next }) => next.error],
      waiting: ["?", ({ eventCount }) => String(eventCount)],
      started_at: ["COALESCE(started_at, ?)", ({ next }) => (next.startedAt === "now" ? at : next.startedAt)],
    },
    extraAssignments: `hero_key = NULL, finished_at = ${at}`,
  });
}

/**
 * Makes the schedules due whose runs end, and gives them a new revision: a worker that is looking at such a schedule must
 * look again. One statement per schedule locks the rows in the order of their names.
 */
function endedScheduleStatements(names: readonly string[], at: number): Sql[] {
  const set = `revision = revision + 1, next_at = LEAST(COALESCE(next_at, ${at}), ${at})`;
  return names.map((name) => sql(`UPDATE pawl_schedules SET ${set} WHERE name = ?`, [name]));
}

/** Increments the message counts, makes parked receivers ready and stores the messages. The tasks must be locked. */
export function messageStatements(messages: readonly Message[], at: number): Sql[] {
  if (messages.length === 0) return [];
  const counts = new Map<string, number>();
  for (const { to } of messages) counts.set(to, (counts.get(to) ?? 0) + 1);
  return [
    ...updateEach(
      [...counts].sort(([a], [b]) => (a < b ? -1 : 1)),
      {
        table: "pawl_tasks",
        key: "run_id",
        keyOf: ([runId]) => runId,
        set: { pending_messages: ["pending_messages + ?", ([, count]) => count] },
        // `state` is last: MySQL assigns from left to right, and the other expressions need its old value.
        extraAssignments: ["due_at", "rank_no", "state"]
          .map((column) => `${column} = ${valueWhenParked(column, at)}`)
          .join(", "),
      },
    ),
    ...insertStatements(
      "pawl_inbox (run_id, kind, data, at)",
      messages.map(({ to, kind, data }) => [to, kind, data, at]),
    ),
  ];
}

function valueWhenParked(column: string, at: number): string {
  const ready = { due_at: String(at), rank_no: "-priority", state: String(taskState.ready) }[column];
  return `IF(state = ${taskState.parked}, ${ready}, ${column})`;
}

function releaseStatements(runIds: readonly string[], at: number): Sql[] {
  const set = `due_at = ${at}, rank_no = -priority, state = ${taskState.ready}`;
  return statementsPerKeyPart(runIds, (part) =>
    sql(
      `UPDATE pawl_tasks ${forcePrimaryKey} SET ${set} WHERE run_id IN (${placeholders(part)}) AND state = ${taskState.parked}`,
      part,
    ),
  );
}

/**
 * Used for a client that appends to a log and keeps the task's state. For a worker's runs the claim has already cleared
 * `fresh`.
 */
function clearFreshStatements(transitions: readonly Transition[]): Sql[] {
  const ids = transitions.flatMap(({ runId, next }) => (next.kind === "keep" ? runId : []));
  return statementsPerKeyPart(ids, clearFreshStatement);
}

const clearFreshStatement = (runIds: readonly string[]): Sql =>
  sql(`UPDATE pawl_tasks ${forcePrimaryKey} SET fresh = 0 WHERE run_id IN (${placeholders(runIds)})`, runIds);

/** Only the columns that a write contains are overwritten, so there is one statement per set of columns. */
function cursorStatements(transitions: readonly Transition[], at: number): Sql[] {
  const groups = new Map<string, Value[][]>();
  for (const { runId, cursors } of transitions) {
    for (const write of mergeByNode(cursors)) {
      const writtenColumns = [
        write.cursor !== undefined ? "`cursor`" : "",
        write.progress !== undefined ? "progress" : "",
      ];
      const columns = writtenColumns.filter((column) => column !== "").join(",");
      const rows = groups.get(columns) ?? [];
      groups.set(columns, rows);
      rows.push([runId, write.node, write.cursor ?? null, write.progress ?? null, at]);
    }
  }
  return [...groups].flatMap(([columns, rows]) => {
    const updated = [...columns.split(",").filter((column) => column !== ""), "at"];
    const updates = updated.map((column) => `${column} = VALUES(${column})`).join(", ");
    return insertStatements(
      "pawl_cursors (run_id, node, `cursor`, progress, at)",
      rows,
      ` ON DUPLICATE KEY UPDATE ${updates}`,
    );
  });
}

function mergeByNode(cursors: readonly CursorWrite[]): readonly CursorWrite[] {
  if (cursors.length < 2) return cursors;
  const byNode = new Map<string, CursorWrite>();
  for (const write of cursors) byNode.set(write.node, { ...byNode.get(write.node), ...withoutUndefined(write) });
  return [...byNode.values()];
}

const withoutUndefined = (write: CursorWrite): CursorWrite =>
  Object.fromEntries(Object.entries(write).filter(([, value]) => value !== undefined)) as unknown as CursorWrite;
