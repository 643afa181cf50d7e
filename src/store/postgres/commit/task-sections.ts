/** The sections of a commit that concern tasks: whose they are, parking, ending, and messages. */
import { taskState } from "../../sql/records.js";
import { dueUnchanged, type Move, move, startedNow, type Work } from "../work.js";
import { plainArray, textArray } from "./arrays.js";
import type { Section } from "./statement.js";

const { parked, ready, owned } = taskState;

/** An inline step: only its event is written, and no task is locked. That the runs are the worker's is read. */
export const keeps: Section = {
  letter: "k",
  values: ({ keeps }) => (keeps.length === 0 ? null : [plainArray(keeps), keeps.length]),
  parts: ({ tables, bind, workerId, epoch }) => {
    const mine = `t.run_id = ANY (${bind()}::uuid[]) AND t.owner = ${workerId} AND t.epoch = ${epoch}`;
    return {
      locks: [`kp AS MATERIALIZED (SELECT t.run_id, t.mail FROM ${tables.tasks} t WHERE ${mine})`],
      checks: [`(SELECT count(*) FROM kp) = ${bind()}::int`],
      columns: ["ARRAY(SELECT kp.run_id FROM kp WHERE kp.mail > 0) AS mailed"],
    };
  },
};

/**
 * Nothing but runs that end, without mail, which is the rule: the tasks are deleted without being locked and looked at
 * first. If one of them is not the worker's, or has mail after all, the division fails and with it the statement; it is
 * then sent again in the general form, which finds out why. (One record of the WAL less per run, and a loop.)
 */
export const plainEnds: Section = {
  letter: "z",
  values: (work) => (endsPlainly(work) ? endValues(work.moves) : null),
  parts: ({ tables, bind, workerId, epoch }) => {
    const [ids, ...arrays] = ["uuid", "text", "text", "text", "int8", "text"].map((type) => `${bind()}::${type}[]`);
    const began = `CASE u.started_at WHEN ${startedNow} THEN g.at ELSE u.started_at END`;
    return {
      writes: [
        `zt AS (DELETE FROM ${tables.tasks} t WHERE t.run_id = ANY (${ids}) AND (SELECT g.at FROM g) IS NOT NULL
          AND t.owner = ${workerId} AND t.epoch = ${epoch} AND t.mail = 0 RETURNING 1)`,
        `zr AS (UPDATE ${tables.runs} r SET status = u.status, output = u.output, error = u.error, waiting = u.events,
            hero_key = NULL, started_at = coalesce(r.started_at, ${began}), finished_at = g.at
          FROM g, unnest(${[ids, ...arrays].join(", ")}) u(id, status, output, error, started_at, events)
          WHERE r.id = u.id AND r.id = ANY (${ids}))`,
      ],
      columns: [`1 / ((SELECT count(*) FROM zt) = ${bind()}::int)::int AS ended`],
    };
  },
};

const endsPlainly = ({ optimistic, fence, moves, drained }: Work): boolean =>
  optimistic &&
  fence !== null &&
  moves.length > 0 &&
  drained.length === 0 &&
  moves.every(({ kind }) => kind === move.finish);

function endValues(moves: readonly Move[]): readonly unknown[] {
  return [
    plainArray(moves.map(({ runId }) => runId)),
    textArray(moves.map(({ status }) => status)),
    textArray(moves.map(({ text }) => text)),
    textArray(moves.map(({ error }) => error)),
    plainArray(moves.map(({ startedAt }) => startedAt)),
    plainArray(moves.map(({ wakeAt }) => wakeAt)),
    moves.length,
  ];
}

/**
 * Every task row that is going to change is locked first, in the order of run ids (the arrays are sorted, and LATERAL
 * makes it a loop over them): two batches that touch the same runs wait for each other, but never in a circle. What the
 * lock returns is the row's latest version, so `mail` is right although the snapshot may be older.
 */
export const locks: Section = {
  letter: "l",
  values: (work) => (work.moves.length === 0 || endsPlainly(work) ? null : lockValues(work.moves)),
  parts: ({ tables, fenced, bind, workerId, epoch }) => {
    const types = ["uuid", "int2", "text", "text", "text", "int8", "int8", "int8", "int4", "text", "int4"];
    const arrays = types.map((type) => `${bind()}::${type}[]`);
    const columns = "id, kind, status, text, error, started_at, wake_at, wake_in, letters, route, priority";
    // `f.at` is in there to have the worker's row locked before any task.
    const task = `SELECT t.state, t.mail, t.owner, t.epoch FROM ${tables.tasks} t
      WHERE t.run_id = u.id AND f.at IS NOT NULL FOR UPDATE`;
    const lock = `lk AS MATERIALIZED (SELECT u.*, t.* FROM f, unnest(${arrays.join(", ")}) u(${columns}), LATERAL (${task}) t)`;
    const mine = fenced ? `lk.owner = ${workerId} AND lk.epoch = ${epoch}` : `lk.state <> ${owned} AND lk.mail = 0`;
    // A run that has messages which this commit does not drain cannot end.
    const isRead = `(lk.kind <> ${move.finish} OR lk.mail <= lk.letters)`;
    const count = `SELECT count(*) FROM lk WHERE lk.kind < ${move.mail} AND ${mine} AND ${isRead}`;
    // The count is needed for its reading of lk, too: without a reader there would be no lock.
    return { locks: [lock], checks: [`(${count}) = ${bind()}::int`] };
  },
};

function lockValues(moves: readonly Move[]): readonly unknown[] {
  return [
    plainArray(moves.map(({ runId }) => runId)),
    plainArray(moves.map(({ kind }) => kind)),
    textArray(moves.map(({ status }) => status)),
    textArray(moves.map(({ text }) => text)),
    textArray(moves.map(({ error }) => error)),
    plainArray(moves.map(({ startedAt }) => startedAt)),
    // Whole milliseconds, and never early.
    plainArray(moves.map(({ wakeAt }) => wakeAt && Math.ceil(wakeAt))),
    plainArray(moves.map(({ wakeIn }) => wakeIn && Math.ceil(wakeIn))),
    plainArray(moves.map(({ letters }) => letters)),
    // Mostly null throughout, which is sent as one NULL each.
    textArray(moves.map(({ route }) => route)),
    plainArray(moves.map(({ priority }) => priority)),
    moves.filter(({ kind }) => kind < move.mail).length,
  ];
}

/** Deletes what was drained. Counted per run by what was really there. */
export const drained: Section = {
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
const movedWith = (drained: string) =>
  `mv AS MATERIALIZED (SELECT lk.*, g.at, ${drained} AS drained,
    CASE lk.started_at WHEN ${startedNow} THEN g.at ELSE lk.started_at END AS began FROM g, lk)`;

export const moved: Section = {
  letter: "",
  values: (work) => (work.moves.length === 0 || work.drained.length > 0 || endsPlainly(work) ? null : []),
  parts: () => ({ writes: [movedWith("0")] }),
};

export const movedAndDrained: Section = {
  letter: "",
  values: ({ moves, drained }) => (moves.length === 0 || drained.length === 0 ? null : []),
  parts: ({ tables }) => ({
    writes: [
      movedWith("CASE WHEN lk.letters = 0 THEN 0 ELSE (SELECT count(*)::int FROM dr WHERE dr.run_id = lk.id) END"),
      // Those that stay with their owner; the others' rows are written, or deleted, by their own sections.
      `dm AS (UPDATE ${tables.tasks} t SET mail = t.mail - mv.drained FROM mv
        WHERE t.run_id = mv.id AND ${isMoved("t.run_id")} AND mv.drained > 0 AND (mv.kind = ${move.drain} OR mv.kind = ${move.park} AND mv.mail > mv.drained))`,
    ],
    columns: [`ARRAY(SELECT mv.id FROM mv WHERE mv.kind = ${move.drain} AND mv.mail > mv.drained) AS drained_mailed`],
  }),
};

/** Parks what has no undrained mail; the others stay as they are and are named in `kept`. */
export const parks: Section = {
  letter: "p",
  values: ({ moves }) => (has(moves, move.park) ? [] : null),
  parts: ({ tables }) => ({
    writes: [
      `pt AS (UPDATE ${tables.tasks} t SET
          state = CASE WHEN d.wake_in = ${dueUnchanged} THEN t.state WHEN d.due_at <= d.at THEN ${ready} ELSE ${parked} END,
          due_at = CASE WHEN d.wake_in = ${dueUnchanged} THEN t.due_at ELSE d.due_at END,
          owner = NULL, epoch = NULL, deliveries = 0, mail = 0, fresh = false,
          workflow = coalesce(d.route, t.workflow), priority = coalesce(d.priority, t.priority)
        FROM (SELECT mv.*, least(mv.wake_at, mv.at + mv.wake_in) AS due_at FROM mv) d
        WHERE t.run_id = d.id AND ${isMoved("t.run_id")} AND d.kind = ${move.park} AND d.mail = d.drained)`,
      `pr AS (UPDATE ${tables.runs} r SET status = mv.status, waiting = mv.text, started_at = coalesce(r.started_at, mv.began)
        FROM mv WHERE r.id = mv.id AND ${isMoved("r.id")} AND mv.kind = ${move.park} AND mv.mail = mv.drained)`,
    ],
    columns: [`ARRAY(SELECT mv.id FROM mv WHERE mv.kind = ${move.park} AND mv.mail > mv.drained) AS kept`],
  }),
};

export const finishes: Section = {
  letter: "f",
  values: (work) => (has(work.moves, move.finish) && !endsPlainly(work) ? [] : null),
  parts: ({ tables }) => ({
    writes: [
      `fr AS (UPDATE ${tables.runs} r SET status = mv.status, output = mv.text, error = mv.error, waiting = mv.wake_at::text,
          hero_key = NULL, started_at = coalesce(r.started_at, mv.began), finished_at = mv.at
        FROM mv WHERE r.id = mv.id AND ${isMoved("r.id")} AND mv.kind = ${move.finish})`,
      `ft AS (DELETE FROM ${tables.tasks} t WHERE ${isMoved("t.run_id", `mv.kind = ${move.finish}`)})`,
    ],
  }),
};

/**
 * The addressees are locked (above) before any message gets its id, so ids grow in the order of commit within a run.
 * The ids are given above the sort, in the order of the messages.
 */
export const mail: Section = {
  letter: "m",
  values: ({ mail }) =>
    mail.length === 0
      ? null
      : [
          plainArray(mail.map(({ to }) => to)),
          textArray(mail.map(({ kind }) => kind)),
          textArray(mail.map(({ data }) => data)),
        ],
  parts: ({ tables, bind }) => ({
    writes: [
      `mt AS (UPDATE ${tables.tasks} t SET mail = t.mail + mv.letters,
          state = CASE t.state WHEN ${parked} THEN ${ready} ELSE t.state END,
          due_at = CASE t.state WHEN ${parked} THEN mv.at ELSE t.due_at END
        FROM mv WHERE t.run_id = mv.id AND ${isMoved("t.run_id")} AND mv.kind = ${move.mail} RETURNING t.run_id)`,
      `mi AS (INSERT INTO ${tables.inbox} (run_id, kind, data, at) SELECT u.run_id, u.kind, u.data, g.at
        FROM g, unnest(${bind()}::uuid[], ${bind()}::text[], ${bind()}::text[]) WITH ORDINALITY u(run_id, kind, data, n)
        WHERE u.run_id = ANY (ARRAY(SELECT mt.run_id FROM mt)) ORDER BY u.n)`,
    ],
    columns: ["ARRAY(SELECT mt.run_id FROM mt) AS delivered"],
  }),
};

export const releases: Section = {
  letter: "r",
  values: ({ moves }) => (has(moves, move.release) ? [] : null),
  parts: ({ tables }) => ({
    writes: [
      `rt AS (UPDATE ${tables.tasks} t SET state = ${ready}, due_at = mv.at
        FROM mv WHERE t.run_id = mv.id AND ${isMoved("t.run_id")} AND mv.kind = ${move.release} AND t.state = ${parked})`,
    ],
  }),
};

/**
 * Said of every table that is joined with the moved rows, although the join implies it: this way it is searched by its
 * key whatever the plan begins with. See `sessionSettings`.
 */
const isMoved = (key: string, condition = "true") => `${key} = ANY (ARRAY(SELECT mv.id FROM mv WHERE ${condition}))`;

const has = (moves: Work["moves"], kind: number) => moves.some((one) => one.kind === kind);
