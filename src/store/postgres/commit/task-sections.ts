/** The sections of a commit that concern tasks: ownership, parking, finishing and messages. */
import { taskState } from "../../sql/records.js";
import { type CommitWork, changeKind, dueUnchanged, startedNow, type TaskChange } from "../commit-work.js";
import { plainArray, textArray } from "./arrays.js";
import type { Section } from "./statement.js";

const { parked, ready, owned } = taskState;

/** Checks that the worker owns the runs that stay with it, as after an inline step, without locking their tasks. */
export const keepsSection: Section = {
  letter: "k",
  values: ({ keptRunIds }) => (keptRunIds.length === 0 ? null : [plainArray(keptRunIds), keptRunIds.length]),
  parts: ({ tables, bind, workerId, epoch }) => {
    const isOwn = `t.run_id = ANY (${bind()}::uuid[]) AND t.owner = ${workerId} AND t.epoch = ${epoch}`;
    return {
      locks: [`kept_tasks AS MATERIALIZED (SELECT t.run_id, t.pending_messages FROM ${tables.tasks} t WHERE ${isOwn})`],
      checks: [`(SELECT count(*) FROM kept_tasks) = ${bind()}::int`],
      columns: ["ARRAY(SELECT k.run_id FROM kept_tasks k WHERE k.pending_messages > 0) AS kept_with_messages"],
    };
  },
};

/**
 * Finishes runs when the batch changes no other tasks. It assumes that they have no messages, as is usual, and deletes
 * the tasks without locking and checking them first, which saves a loop and one WAL record per run. If a task has
 * messages or the worker does not own it, the division by zero makes the statement fail; the store then sends the
 * general statement, which finds the reason.
 */
export const plainFinishesSection: Section = {
  letter: "z",
  values: (work) => (isOptimisticFinish(work) ? finishValues(work.taskChanges) : null),
  parts: ({ tables, bind, workerId, epoch }) => {
    const [ids, ...arrays] = ["uuid", "text", "text", "text", "int8", "text"].map((type) => `${bind()}::${type}[]`);
    const startedAt = `CASE u.started_at WHEN ${startedNow} THEN gate.at ELSE u.started_at END`;
    return {
      writes: [
        `deleted_tasks AS (DELETE FROM ${tables.tasks} t WHERE t.run_id = ANY (${ids}) AND (SELECT gate.at FROM gate) IS NOT NULL
          AND t.owner = ${workerId} AND t.epoch = ${epoch} AND t.pending_messages = 0 RETURNING 1)`,
        `finished_runs AS (UPDATE ${tables.runs} r SET status = u.status, output = u.output, error = u.error, waiting = u.event_count,
            hero_key = NULL, started_at = coalesce(r.started_at, ${startedAt}), finished_at = gate.at
          FROM gate, unnest(${[ids, ...arrays].join(", ")}) u(id, status, output, error, started_at, event_count)
          WHERE r.id = u.id AND r.id = ANY (${ids}))`,
      ],
      columns: [`1 / ((SELECT count(*) FROM deleted_tasks) = ${bind()}::int)::int AS are_all_finished`],
    };
  },
};

export const isOptimisticFinish = ({ isOptimistic, fence, taskChanges, drained }: CommitWork): boolean =>
  isOptimistic &&
  fence !== null &&
  taskChanges.length > 0 &&
  drained.length === 0 &&
  taskChanges.every(({ kind }) => kind === changeKind.finish);

function finishValues(taskChanges: readonly TaskChange[]): readonly unknown[] {
  return [
    plainArray(taskChanges.map(({ runId }) => runId)),
    textArray(taskChanges.map(({ status }) => status)),
    textArray(taskChanges.map(({ waitingOrOutput }) => waitingOrOutput)),
    textArray(taskChanges.map(({ error }) => error)),
    plainArray(taskChanges.map(({ startedAt }) => startedAt)),
    plainArray(taskChanges.map(({ wakeAt }) => wakeAt)),
    taskChanges.length,
  ];
}

/**
 * Locks every task row that is going to change, in the order of run ids (the arrays are sorted, and LATERAL loops over
 * them), so that two batches with the same runs wait for each other but cannot deadlock. The lock returns the latest
 * version of the row, so `pending_messages` is right even if the snapshot is older.
 */
export const locksSection: Section = {
  letter: "l",
  values: (work) => (work.taskChanges.length === 0 || isOptimisticFinish(work) ? null : lockValues(work.taskChanges)),
  parts: ({ tables, isFenced, bind, workerId, epoch }) => {
    const types = ["uuid", "int2", "text", "text", "text", "int8", "int8", "int8", "int4", "text", "int4"];
    const arrays = types.map((type) => `${bind()}::${type}[]`);
    const columns =
      "id, kind, status, waiting_or_output, error, started_at, wake_at, wake_in, message_count, route, priority";
    // The condition on `fence.at` makes the statement lock the worker's row before any task.
    const selectTaskSql = `SELECT t.state, t.pending_messages, t.owner, t.epoch FROM ${tables.tasks} t
      WHERE t.run_id = u.id AND fence.at IS NOT NULL FOR UPDATE`;
    const lockedTasksCte = `locked_tasks AS MATERIALIZED (SELECT u.*, t.* FROM fence, unnest(${arrays.join(", ")}) u(${columns}), LATERAL (${selectTaskSql}) t)`;
    const isWritable = isFenced
      ? `locked.owner = ${workerId} AND locked.epoch = ${epoch}`
      : `locked.state <> ${owned} AND locked.pending_messages = 0`;
    // A run cannot finish while it has messages that this commit does not drain.
    const isFullyDrained = `(locked.kind <> ${changeKind.finish} OR locked.pending_messages <= locked.message_count)`;
    const writableCountSql = `SELECT count(*) FROM locked_tasks locked WHERE locked.kind < ${changeKind.deliver} AND ${isWritable} AND ${isFullyDrained}`;
    // The check must read from locked_tasks: without a reader PostgreSQL would not lock anything.
    return { locks: [lockedTasksCte], checks: [`(${writableCountSql}) = ${bind()}::int`] };
  },
};

function lockValues(taskChanges: readonly TaskChange[]): readonly unknown[] {
  return [
    plainArray(taskChanges.map(({ runId }) => runId)),
    plainArray(taskChanges.map(({ kind }) => kind)),
    textArray(taskChanges.map(({ status }) => status)),
    textArray(taskChanges.map(({ waitingOrOutput }) => waitingOrOutput)),
    textArray(taskChanges.map(({ error }) => error)),
    plainArray(taskChanges.map(({ startedAt }) => startedAt)),
    // Rounded up to whole milliseconds, so that no run wakes up early.
    plainArray(taskChanges.map(({ wakeAt }) => wakeAt && Math.ceil(wakeAt))),
    plainArray(taskChanges.map(({ wakeInMs }) => wakeInMs && Math.ceil(wakeInMs))),
    plainArray(taskChanges.map(({ messageCount }) => messageCount)),
    // Routes and priorities are mostly all null, and then each array is sent as one NULL.
    textArray(taskChanges.map(({ route }) => route)),
    plainArray(taskChanges.map(({ priority }) => priority)),
    taskChanges.filter(({ kind }) => kind < changeKind.deliver).length,
  ];
}

/** Checks that the receiver of a message is as its sender has seen it. */
export const seenSection: Section = {
  letter: "q",
  values: ({ seen }) => (seen === null ? null : [seen.pendingMessages, seen.lastEvent]),
  parts: ({ tables, bind }) => {
    const lastSeqSql = `SELECT e.seq + e.span - 1 FROM ${tables.events} e WHERE e.run_id = locked.id ORDER BY e.seq DESC LIMIT 1`;
    const isSeen = `locked.pending_messages = ${bind()}::int4 AND coalesce(${bind()}::int8, -1) IN (-1, coalesce((${lastSeqSql}), 0))`;
    return { checks: [`EXISTS (SELECT 1 FROM locked_tasks locked WHERE ${isSeen})`] };
  },
};

/** Deletes the drained inbox rows and returns those that existed, so that they can be counted per run. */
export const drainedSection: Section = {
  letter: "d",
  values: ({ drained }) =>
    drained.length === 0
      ? null
      : [plainArray(drained.map(({ runId }) => runId)), plainArray(drained.map(({ id }) => id))],
  parts: ({ tables, bind }) => ({
    writes: [
      `drained_rows AS (DELETE FROM ${tables.inbox} i WHERE i.run_id = ANY (${bind()}::uuid[]) AND i.id = ANY (${bind()}::int8[])
        AND (SELECT gate.at FROM gate) IS NOT NULL RETURNING i.run_id)`,
    ],
  }),
};

/**
 * The locked rows, with the instant of the commit and the number of their drained messages; none if the gate has no
 * row.
 */
const changedTasksCte = (drainedCount: string) =>
  `changed_tasks AS MATERIALIZED (SELECT locked.*, gate.at, ${drainedCount} AS drained_count,
    CASE locked.started_at WHEN ${startedNow} THEN gate.at ELSE locked.started_at END AS started_at_or_now FROM gate, locked_tasks locked)`;

export const changedTasksSection: Section = {
  letter: "",
  values: (work) => (work.taskChanges.length === 0 || work.drained.length > 0 || isOptimisticFinish(work) ? null : []),
  parts: () => ({ writes: [changedTasksCte("0")] }),
};

export const changedAndDrainedTasksSection: Section = {
  letter: "",
  values: ({ taskChanges, drained }) => (taskChanges.length === 0 || drained.length === 0 ? null : []),
  parts: ({ tables }) => ({
    writes: [
      changedTasksCte(
        "CASE WHEN locked.message_count = 0 THEN 0 ELSE (SELECT count(*)::int FROM drained_rows d WHERE d.run_id = locked.id) END",
      ),
      // This updates only runs that stay with their owner: the sections for parks and finishes write the other tasks.
      `drained_tasks AS (UPDATE ${tables.tasks} t SET pending_messages = t.pending_messages - changed.drained_count FROM changed_tasks changed
        WHERE t.run_id = changed.id AND ${isChangedTask("t.run_id")} AND changed.drained_count > 0 AND (changed.kind = ${changeKind.drain} OR changed.kind = ${changeKind.park} AND changed.pending_messages > changed.drained_count))`,
    ],
    columns: [
      `ARRAY(SELECT changed.id FROM changed_tasks changed WHERE changed.kind = ${changeKind.drain} AND changed.pending_messages > changed.drained_count) AS drained_with_messages`,
    ],
  }),
};

/**
 * A client may park a task that waits in a class. Then the task gets the route back that it had before, unless it keeps its
 * due time.
 */
const baseRoute = `CASE d.wake_in WHEN ${dueUnchanged} THEN t.workflow ELSE split_part(t.workflow, E'\\t\\t', 1) END`;

/** Parks the runs without undrained messages; the other runs stay with their owner, and `not_parked` names them. */
export const parksSection: Section = {
  letter: "p",
  values: ({ taskChanges }) => (hasKind(taskChanges, changeKind.park) ? [] : null),
  parts: ({ tables, isFenced }) => ({
    writes: [
      `parked_tasks AS (UPDATE ${tables.tasks} t SET
          state = CASE WHEN d.wake_in = ${dueUnchanged} THEN t.state WHEN d.due_at <= d.at THEN ${ready} ELSE ${parked} END,
          due_at = CASE WHEN d.wake_in = ${dueUnchanged} THEN t.due_at ELSE d.due_at END,
          owner = NULL, epoch = NULL, deliveries = 0, pending_messages = 0, fresh = false,
          workflow = coalesce(d.route, ${isFenced ? "t.workflow" : baseRoute}), priority = coalesce(d.priority, t.priority)
        FROM (SELECT changed.*, least(changed.wake_at, changed.at + changed.wake_in) AS due_at FROM changed_tasks changed) d
        WHERE t.run_id = d.id AND ${isChangedTask("t.run_id")} AND d.kind = ${changeKind.park} AND d.pending_messages = d.drained_count)`,
      `parked_runs AS (UPDATE ${tables.runs} r SET status = changed.status, waiting = changed.waiting_or_output, started_at = coalesce(r.started_at, changed.started_at_or_now)
        FROM changed_tasks changed WHERE r.id = changed.id AND ${isChangedTask("r.id")} AND changed.kind = ${changeKind.park} AND changed.pending_messages = changed.drained_count)`,
    ],
    columns: [
      `ARRAY(SELECT changed.id FROM changed_tasks changed WHERE changed.kind = ${changeKind.park} AND changed.pending_messages > changed.drained_count) AS not_parked`,
    ],
  }),
};

export const finishesSection: Section = {
  letter: "f",
  values: (work) => (hasKind(work.taskChanges, changeKind.finish) && !isOptimisticFinish(work) ? [] : null),
  parts: ({ tables }) => ({
    writes: [
      `finished_runs AS (UPDATE ${tables.runs} r SET status = changed.status, output = changed.waiting_or_output, error = changed.error, waiting = changed.wake_at::text,
          hero_key = NULL, started_at = coalesce(r.started_at, changed.started_at_or_now), finished_at = changed.at
        FROM changed_tasks changed WHERE r.id = changed.id AND ${isChangedTask("r.id")} AND changed.kind = ${changeKind.finish})`,
      `deleted_tasks AS (DELETE FROM ${tables.tasks} t WHERE ${isChangedTask("t.run_id", `changed.kind = ${changeKind.finish}`)})`,
    ],
  }),
};

/**
 * The receivers' tasks are locked (`locksSection`) before any message gets its id, so within a run ids grow in the
 * order of commit. The insert is sorted, so the ids of one commit follow the order of its messages.
 */
export const messagesSection: Section = {
  letter: "m",
  values: ({ messages }) =>
    messages.length === 0
      ? null
      : [
          plainArray(messages.map(({ to }) => to)),
          textArray(messages.map(({ kind }) => kind)),
          textArray(messages.map(({ data }) => data)),
        ],
  parts: ({ tables, bind }) => ({
    writes: [
      `receiver_tasks AS (UPDATE ${tables.tasks} t SET pending_messages = t.pending_messages + changed.message_count,
          state = CASE t.state WHEN ${parked} THEN ${ready} ELSE t.state END,
          due_at = CASE t.state WHEN ${parked} THEN changed.at ELSE t.due_at END
        FROM changed_tasks changed WHERE t.run_id = changed.id AND ${isChangedTask("t.run_id")} AND changed.kind = ${changeKind.deliver} RETURNING t.run_id)`,
      `inserted_messages AS (INSERT INTO ${tables.inbox} (run_id, kind, data, at) SELECT u.run_id, u.kind, u.data, gate.at
        FROM gate, unnest(${bind()}::uuid[], ${bind()}::text[], ${bind()}::text[]) WITH ORDINALITY u(run_id, kind, data, n)
        WHERE u.run_id = ANY (ARRAY(SELECT run_id FROM receiver_tasks)) ORDER BY u.n)`,
    ],
    columns: ["ARRAY(SELECT run_id FROM receiver_tasks) AS delivered"],
  }),
};

export const releasesSection: Section = {
  letter: "r",
  values: ({ taskChanges }) => (hasKind(taskChanges, changeKind.release) ? [] : null),
  parts: ({ tables }) => ({
    writes: [
      `released_tasks AS (UPDATE ${tables.tasks} t SET state = ${ready}, due_at = changed.at
        FROM changed_tasks changed WHERE t.run_id = changed.id AND ${isChangedTask("t.run_id")} AND changed.kind = ${changeKind.release} AND t.state = ${parked})`,
    ],
  }),
};

/**
 * Makes the schedules due whose runs end, and gives them a new revision: a worker that is looking at such a schedule must
 * look again. The rows are locked in the order of their names, after the tasks.
 */
export const endedSchedulesSection: Section = {
  letter: "g",
  values: ({ endedSchedules }) => (endedSchedules.length === 0 ? null : [textArray(endedSchedules)]),
  parts: ({ tables, bind }) => ({
    writes: [
      `ended_schedules AS MATERIALIZED (SELECT s.name, gate.at FROM gate, unnest(${bind()}::text[]) u(name), LATERAL (
          SELECT s.name FROM ${tables.schedules} s WHERE s.name = u.name AND gate.at IS NOT NULL FOR UPDATE) s)`,
      `due_schedules AS (UPDATE ${tables.schedules} s SET revision = s.revision + 1, next_at = least(s.next_at, ended.at)
        FROM ended_schedules ended WHERE s.name = ended.name AND s.name = ANY (ARRAY(SELECT ended.name FROM ended_schedules ended)))`,
    ],
  }),
};

/**
 * Every table that is joined with the changed tasks gets this condition, although the join implies it: the condition
 * makes PostgreSQL search the table by its key, whichever table the plan begins with. See `sessionSettings`.
 */
const isChangedTask = (key: string, condition = "true") =>
  `${key} = ANY (ARRAY(SELECT changed.id FROM changed_tasks changed WHERE ${condition}))`;

const hasKind = (taskChanges: CommitWork["taskChanges"], kind: number) =>
  taskChanges.some((change) => change.kind === kind);
