/**
 * The first half of a commit: locks what the batch will touch and reads what it must know, all in one packet. The order
 * of locks is the same everywhere (the worker's row, then tasks by run id), so that batches cannot deadlock.
 */

import type { Batch, CommitResult, Fence, Transition } from "../contract/store.js";
import { taskState } from "../sql/records.js";
import type { Result, Session } from "./session.js";
import { byKey, marks, type Sql, sql } from "./sql.js";

interface TaskSeen {
  readonly state: number;
  readonly owner: string | null;
  readonly epoch: number;
  readonly mail: number;
  /** The number of its last event, 0 when there is none. */
  readonly tail: number;
}

export interface Seen {
  /** After the locks were had, so that the stamps of one run never go backwards. */
  readonly at: number;
  readonly holdsFence: boolean;
  readonly tasks: ReadonlyMap<string, TaskSeen>;
  /** Of the inbox rows that the batch drains, those that exist: id → run. */
  readonly drained: ReadonlyMap<number, string>;
}

/** A shared lock: flushes of one worker do not wait for each other, the reaper (which writes the row) waits for them. */
export const fenceStatement = ({ workerId, epoch }: Fence): Sql =>
  sql("SELECT 1 FROM pawl_workers WHERE id = ? AND epoch = ? AND live = 1 LOCK IN SHARE MODE", [workerId, epoch]);

export async function look(session: Session, batch: Batch, now: string): Promise<Seen> {
  const { fence, transitions } = batch;
  const statements: Sql[] = [];
  const ask = (statement: Sql) => statements.push(statement) - 1;
  const fenceAt = fence === null ? -1 : ask(fenceStatement(fence));
  const tasksAt = lookAtTasks(batch).map(ask);
  const drainedAt = readDrained(transitions).map(ask);
  const nowAt = ask(sql(`SELECT ${now} AS at`));
  const results = await session.run(statements);
  const rowsOf = (indexes: readonly number[]) => indexes.flatMap((index) => (results[index] as Result).rows);
  return {
    at: Number(rowsOf([nowAt])[0]?.at),
    holdsFence: fenceAt === -1 || rowsOf([fenceAt]).length > 0,
    tasks: new Map(rowsOf(tasksAt).map((row) => [row.run_id as string, taskSeen(row)])),
    drained: new Map(rowsOf(drainedAt).map((row) => [Number(row.id), row.run_id as string])),
  };
}

const tail = "SELECT e.seq + e.span - 1 FROM pawl_events e WHERE e.run_id = t.run_id ORDER BY e.seq DESC LIMIT 1";

/**
 * The tasks, and where their logs end: one step down a primary key each, in one statement (100 runs: 0.75 ms; in two
 * 1.1 ms). A log's end is read without a lock, so it may be one that a commit we waited for has just moved; then our
 * events meet a duplicate key, and the batch is a conflict all the same.
 *
 * A worker that only appends has its tasks anyway, as long as its fence holds: then not even the tasks are locked.
 */
function lookAtTasks({ fence, transitions }: Batch): Sql[] {
  const ids = new Set<string>();
  let appendsOnly = fence !== null;
  for (const { runId, next, drained, mail, release } of transitions) {
    ids.add(runId);
    for (const { to } of mail) ids.add(to);
    for (const id of release) ids.add(id);
    if (next.kind !== "keep" || drained.length + mail.length + release.length > 0) appendsOnly = false;
  }
  const lock = appendsOnly ? "" : "ORDER BY t.run_id FOR UPDATE";
  const select = `SELECT t.run_id, t.state, t.owner, t.epoch, t.mail, (${tail}) AS tail`;
  return inParts([...ids].sort(), (part) =>
    sql(`${select} FROM pawl_tasks t ${byKey} WHERE t.run_id IN (${marks(part)}) ${lock}`, part),
  );
}

function readDrained(transitions: readonly Transition[]): Sql[] {
  const ids = transitions.flatMap(({ drained }) => drained);
  return inParts(ids, (part) => sql(`SELECT id, run_id FROM pawl_inbox WHERE id IN (${marks(part)})`, part));
}

function inParts<T>(items: readonly T[], statement: (part: readonly T[]) => Sql): Sql[] {
  const statements: Sql[] = [];
  for (let from = 0; from < items.length; from += 1000) statements.push(statement(items.slice(from, from + 1000)));
  return statements;
}

const taskSeen = (row: Readonly<Record<string, unknown>>): TaskSeen => ({
  state: Number(row.state),
  owner: row.owner as string | null,
  epoch: Number(row.epoch),
  mail: Number(row.mail),
  tail: Number(row.tail ?? 0),
});

/** Why the batch cannot be written, or null. */
export function refusalOf({ fence, transitions }: Batch, seen: Seen): CommitResult | null {
  if (!seen.holdsFence) return { kind: "fenced" };
  for (const { runId, after, events, next, drained } of transitions) {
    const task = seen.tasks.get(runId);
    const isMine =
      task !== undefined &&
      (fence === null
        ? task.state !== taskState.owned && task.mail === 0
        : task.owner === fence.workerId && task.epoch === fence.epoch);
    if (!isMine || (events.length > 0 && task.tail !== after)) return { kind: "conflict", runId };
    if (next.kind === "finish" && task.mail > drained.length) return { kind: "conflict", runId, unread: true };
  }
  return null;
}
