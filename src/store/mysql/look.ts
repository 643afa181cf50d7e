/**
 * The first half of a commit: locks what the batch will touch and reads what it must know, all in one packet. The order
 * of locks is the same everywhere (the worker's row, then tasks by run id), so that batches cannot deadlock.
 */
import { taskState } from "../sql/records.js";
import type { Batch, CommitResult, Fence, Transition } from "../store.js";
import type { Result, Session } from "./session.js";
import { marks, type Sql, sql } from "./sql.js";

interface TaskSeen {
  readonly state: number;
  readonly owner: string | null;
  readonly epoch: number;
  readonly mail: number;
}

export interface Seen {
  /** After the locks were had, so that the stamps of one run never go backwards. */
  readonly at: number;
  readonly holdsFence: boolean;
  readonly tasks: ReadonlyMap<string, TaskSeen>;
  /** The number of the last event of the runs that get new ones; missing when they have none. */
  readonly tails: ReadonlyMap<string, number>;
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
  const tasksAt = lockTasks(batch).map(ask);
  const tailsAt = readTails(transitions).map(ask);
  const drainedAt = readDrained(transitions).map(ask);
  const nowAt = ask(sql(`SELECT ${now} AS at`));
  const results = await session.run(statements);
  const rowsOf = (indexes: readonly number[]) => indexes.flatMap((index) => (results[index] as Result).rows);
  return {
    at: Number(rowsOf([nowAt])[0]?.at),
    holdsFence: fenceAt === -1 || rowsOf([fenceAt]).length > 0,
    tasks: new Map(rowsOf(tasksAt).map((row) => [row.run_id as string, taskSeen(row)])),
    tails: new Map(
      rowsOf(tailsAt).flatMap((row) => (row.tail === null ? [] : [[row.run_id as string, Number(row.tail)]])),
    ),
    drained: new Map(rowsOf(drainedAt).map((row) => [Number(row.id), row.run_id as string])),
  };
}

/** A worker that only appends has its tasks anyway, as long as its fence holds: those are read without a lock. */
function lockTasks({ fence, transitions }: Batch): Sql[] {
  const ids = new Set<string>();
  let appendsOnly = fence !== null;
  for (const { runId, next, drained, mail, release } of transitions) {
    ids.add(runId);
    for (const { to } of mail) ids.add(to);
    for (const id of release) ids.add(id);
    if (next.kind !== "keep" || drained.length + mail.length + release.length > 0) appendsOnly = false;
  }
  return inParts([...ids].sort(), (part) => {
    const from = "pawl_tasks FORCE INDEX (PRIMARY)";
    const lock = appendsOnly ? "" : "ORDER BY run_id FOR UPDATE";
    return sql(`SELECT run_id, state, owner, epoch, mail FROM ${from} WHERE run_id IN (${marks(part)}) ${lock}`, part);
  });
}

/** Where the logs end: one step down the primary key per run. A statement of its own, to see what the locks waited for. */
function readTails(transitions: readonly Transition[]): Sql[] {
  const ids = transitions.flatMap(({ runId, events }) => (events.length > 0 ? runId : []));
  const tail = "SELECT e.seq + e.span - 1 FROM pawl_events e WHERE e.run_id = t.run_id ORDER BY e.seq DESC LIMIT 1";
  return inParts(ids, (part) =>
    sql(`SELECT t.run_id, (${tail}) AS tail FROM pawl_tasks t WHERE t.run_id IN (${marks(part)})`, part),
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
});

/** Why the batch cannot be written, or null. */
export function refusalOf({ fence, transitions }: Batch, seen: Seen): CommitResult | null {
  if (!seen.holdsFence) return { kind: "fenced" };
  for (const { runId, after, events } of transitions) {
    const task = seen.tasks.get(runId);
    const isMine =
      task !== undefined &&
      (fence === null
        ? task.state !== taskState.owned && task.mail === 0
        : task.owner === fence.workerId && task.epoch === fence.epoch);
    if (!isMine || (events.length > 0 && (seen.tails.get(runId) ?? 0) !== after)) return { kind: "conflict", runId };
  }
  return null;
}
