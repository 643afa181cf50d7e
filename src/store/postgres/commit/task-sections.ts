/** The sections of a commit that concern tasks: whose they are, parking, ending, and messages. */
import { taskState } from "../../sql/records.js";
import { type CommitWork, changeKind, dueUnchanged, startedNow, type TaskChange } from "../commit-work.js";
import { plainArray, textArray } from "./arrays.js";
import type { Section } from "./statement.js";

const { parked, ready, owned } = taskState;

/** An inline step: only its event is written, and no task is locked. That the runs are the worker's is read. */
export const keepsSection: Section = {
  letter: "k",
  values: ({ keptRunIds }) => (keptRunIds.length === 0 ? null : [plainArray(keptRunIds), keptRunIds.length]),
  parts: ({ tables, bind, workerId, epoch }) => {
    const mine = `t.run_id = ANY (${bind()}::uuid[]) AND t.owner = ${workerId} AND t.epoch = ${epoch}`;
    return {
      locks: [`kp AS MATERIALIZED (SELECT t.run_id, t.pending_messages FROM ${tables.tasks} t WHERE ${mine})`],
      checks: [`(SELECT count(*) FROM kp) = ${bind()}::int`],
      columns: ["ARRAY(SELECT kp.run_id FROM kp WHERE kp.pending_messages > 0) AS mailed"],
    };
  },
};

/**
 * Nothing but runs that end, without mail, which is the rule: the tasks are deleted without being locked and looked at
 * first. If one of them is not the worker's, or has mail after all, the division fails and with it the statement; it is
 * then sent again in the general form, which finds out why. (One record of the WAL less per run, and a loop.)
 */
export const plainFinishesSection: Section = {
  letter: "z",
  values: (work) => (isOptimisticFinish(work) ? finishValues(work.taskChanges) : null),
  parts: ({ tables, bind, workerId, epoch }) => {
    const [ids, ...arrays] = ["uuid", "text", "text", "text", "int8", "text"].map((type) => `${bind()}::${type}[]`);
    const began = `CASE u.started_at WHEN ${startedNow} THEN g.at ELSE u.started_at END`;
    return {
      writes: [
        `zt AS (DELETE FROM ${tables.tasks} t WHERE t.run_id = ANY (${ids}) AND (SELECT g.at FROM g) IS NOT NULL
          AND t.owner = ${workerId} AND t.epoch = ${epoch} AND t.pending_messages = 0 RETURNING 1)`,
        `zr AS (UPDATE ${tables.runs} r SET status = u.status, output = u.output, error = u.error, waiting = u.events,
            hero_key = NULL, started_at = coalesce(r.started_at, ${began}), finished_at = g.at
          FROM g, unnest(${[ids, ...arrays].join(", ")}) u(id, status, output, error, started_at, events)
          WHERE r.id = u.id AND r.id = ANY (${ids}))`,
      ],
      columns: [`1 / ((SELECT count(*) FROM zt) = ${bind()}::int)::int AS ended`],
    };
  },
};

const isOptimisticFinish = ({ isOptimistic, fence, taskChanges, drained }: CommitWork): boolean =>
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
 * Every task row that is going to change is locked first, in the order of run ids (the arrays are sorted, and LATERAL
 * makes it a loop over them): two batches that touch the same runs wait for each other, but never in a circle. What the
 * lock returns is the row's latest version, so `mail` is right although the snapshot may be older.
 */
export const locksSection: Section = {
  letter: "l",
  values: (work) => (work.taskChanges.length === 0 || isOptimisticFinish(work) ? null : lockValues(work.taskChanges)),
  parts: ({ tables, isFenced, bind, workerId, epoch }) => {
    const types = ["uuid", "int2", "text", "text", "text", "int8", "int8", "int8", "int4", "text", "int4"];
    const arrays = types.map((type) => `${bind()}::${type}[]`);
    const columns = "id, kind, status, text, error, started_at, wake_at, wake_in, letters, route, priority";
    // `f.at` is in there to have the worker's row locked before any task.
    const task = `SELECT t.state, t.pending_messages, t.owner, t.epoch FROM ${tables.tasks} t
      WHERE t.run_id = u.id AND f.at IS NOT NULL FOR UPDATE`;
    const lock = `lk AS MATERIALIZED (SELECT u.*, t.* FROM f, unnest(${arrays.join(", ")}) u(${columns}), LATERAL (${task}) t)`;
    const mine = isFenced
      ? `lk.owner = ${workerId} AND lk.epoch = ${epoch}`
      : `lk.state <> ${owned} AND lk.pending_messages = 0`;
    // A run that has messages which this commit does not drain cannot end.
    const isRead = `(lk.kind <> ${changeKind.finish} OR lk.pending_messages <= lk.letters)`;
    const count = `SELECT count(*) FROM lk WHERE lk.kind < ${changeKind.deliver} AND ${mine} AND ${isRead}`;
    // The count is needed for its reading of lk, too: without a reader there would be no lock.
    return { locks: [lock], checks: [`(${count}) = ${bind()}::int`] };
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
    // Whole milliseconds, and never early.
    plainArray(taskChanges.map(({ wakeAt }) => wakeAt && Math.ceil(wakeAt))),
    plainArray(taskChanges.map(({ wakeInMs }) => wakeInMs && Math.ceil(wakeInMs))),
    plainArray(taskChanges.map(({ messageCount }) => messageCount)),
    // Mostly null throughout, which is sent as one NULL each.
    textArray(taskChanges.map(({ route }) => route)),
    plainArray(taskChanges.map(({ priority }) => priority)),
    taskChanges.filter(({ kind }) => kind < changeKind.deliver).length,
  ];
}

/** Deletes what was drained. Counted per run by what was really there. */
export const drainedSection: Section = {
  letter: "d",
  values: ({ drained }) =>
    drained.length === 0
      ? null
      : [plainArray(drained.map(({ runId }) => runId)), plainArray(drained.map(({ id }) => id))],
  parts: ({ tables, bind }) => ({
    writes: [
      `dr AS (DELETE FROM ${tables.inbox} i WHERE i.run_id = ANY (${bind()}::uuid[]) AND i.id = ANY (${bind()}::int8[])
        AND (SELECT g.at FROM g) IS NOT NULL RETURNING i.run_id)`,
    ],
  }),
};

/** The locked rows behind the gate, with the instant of the commit and how much of their mail was drained. */
const changedTasksCte = (drainedCount: string) =>
  `mv AS MATERIALIZED (SELECT lk.*, g.at, ${drainedCount} AS drained,
    CASE lk.started_at WHEN ${startedNow} THEN g.at ELSE lk.started_at END AS began FROM g, lk)`;

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
        "CASE WHEN lk.letters = 0 THEN 0 ELSE (SELECT count(*)::int FROM dr WHERE dr.run_id = lk.id) END",
      ),
      // Those that stay with their owner; the others' rows are written, or deleted, by their own sections.
      `dm AS (UPDATE ${tables.tasks} t SET pending_messages = t.pending_messages - mv.drained FROM mv
        WHERE t.run_id = mv.id AND ${isChangedTask("t.run_id")} AND mv.drained > 0 AND (mv.kind = ${changeKind.drain} OR mv.kind = ${changeKind.park} AND mv.pending_messages > mv.drained))`,
    ],
    columns: [
      `ARRAY(SELECT mv.id FROM mv WHERE mv.kind = ${changeKind.drain} AND mv.pending_messages > mv.drained) AS drained_mailed`,
    ],
  }),
};

/** Parks what has no undrained mail; the others stay as they are and are named in `kept`. */
export const parksSection: Section = {
  letter: "p",
  values: ({ taskChanges }) => (hasKind(taskChanges, changeKind.park) ? [] : null),
  parts: ({ tables }) => ({
    writes: [
      `pt AS (UPDATE ${tables.tasks} t SET
          state = CASE WHEN d.wake_in = ${dueUnchanged} THEN t.state WHEN d.due_at <= d.at THEN ${ready} ELSE ${parked} END,
          due_at = CASE WHEN d.wake_in = ${dueUnchanged} THEN t.due_at ELSE d.due_at END,
          owner = NULL, epoch = NULL, deliveries = 0, pending_messages = 0, fresh = false,
          workflow = coalesce(d.route, t.workflow), priority = coalesce(d.priority, t.priority)
        FROM (SELECT mv.*, least(mv.wake_at, mv.at + mv.wake_in) AS due_at FROM mv) d
        WHERE t.run_id = d.id AND ${isChangedTask("t.run_id")} AND d.kind = ${changeKind.park} AND d.pending_messages = d.drained)`,
      `pr AS (UPDATE ${tables.runs} r SET status = mv.status, waiting = mv.text, started_at = coalesce(r.started_at, mv.began)
        FROM mv WHERE r.id = mv.id AND ${isChangedTask("r.id")} AND mv.kind = ${changeKind.park} AND mv.pending_messages = mv.drained)`,
    ],
    columns: [
      `ARRAY(SELECT mv.id FROM mv WHERE mv.kind = ${changeKind.park} AND mv.pending_messages > mv.drained) AS kept`,
    ],
  }),
};

export const finishesSection: Section = {
  letter: "f",
  values: (work) => (hasKind(work.taskChanges, changeKind.finish) && !isOptimisticFinish(work) ? [] : null),
  parts: ({ tables }) => ({
    writes: [
      `fr AS (UPDATE ${tables.runs} r SET status = mv.status, output = mv.text, error = mv.error, waiting = mv.wake_at::text,
          hero_key = NULL, started_at = coalesce(r.started_at, mv.began), finished_at = mv.at
        FROM mv WHERE r.id = mv.id AND ${isChangedTask("r.id")} AND mv.kind = ${changeKind.finish})`,
      `ft AS (DELETE FROM ${tables.tasks} t WHERE ${isChangedTask("t.run_id", `mv.kind = ${changeKind.finish}`)})`,
    ],
  }),
};

/**
 * The addressees are locked (above) before any message gets its id, so ids grow in the order of commit within a run.
 * The ids are given above the sort, in the order of the messages.
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
      `mt AS (UPDATE ${tables.tasks} t SET pending_messages = t.pending_messages + mv.letters,
          state = CASE t.state WHEN ${parked} THEN ${ready} ELSE t.state END,
          due_at = CASE t.state WHEN ${parked} THEN mv.at ELSE t.due_at END
        FROM mv WHERE t.run_id = mv.id AND ${isChangedTask("t.run_id")} AND mv.kind = ${changeKind.deliver} RETURNING t.run_id)`,
      `mi AS (INSERT INTO ${tables.inbox} (run_id, kind, data, at) SELECT u.run_id, u.kind, u.data, g.at
        FROM g, unnest(${bind()}::uuid[], ${bind()}::text[], ${bind()}::text[]) WITH ORDINALITY u(run_id, kind, data, n)
        WHERE u.run_id = ANY (ARRAY(SELECT mt.run_id FROM mt)) ORDER BY u.n)`,
    ],
    columns: ["ARRAY(SELECT mt.run_id FROM mt) AS delivered"],
  }),
};

export const releasesSection: Section = {
  letter: "r",
  values: ({ taskChanges }) => (hasKind(taskChanges, changeKind.release) ? [] : null),
  parts: ({ tables }) => ({
    writes: [
      `rt AS (UPDATE ${tables.tasks} t SET state = ${ready}, due_at = mv.at
        FROM mv WHERE t.run_id = mv.id AND ${isChangedTask("t.run_id")} AND mv.kind = ${changeKind.release} AND t.state = ${parked})`,
    ],
  }),
};

/**
 * Said of every table that is joined with the moved rows, although the join implies it: this way it is searched by its
 * key whatever the plan begins with. See `sessionSettings`.
 */
const isChangedTask = (key: string, condition = "true") =>
  `${key} = ANY (ARRAY(SELECT mv.id FROM mv WHERE ${condition}))`;

const hasKind = (taskChanges: CommitWork["taskChanges"], kind: number) =>
  taskChanges.some((change) => change.kind === kind);
