/**
 * The hot flush: runs get their next event and nothing else happens. The event rows and the fence are one statement, which
 * commits by itself: there is no transaction that could be applied by halves.
 *
 * A few rows check everything in that statement (MariaDB 10.11, one row, best of 300: 0.66 ms against 0.89 ms for a
 * transaction of two packets; a bare insert is 0.28 ms, the fence adds 0.05, the checks of owner and position the rest).
 *
 * - No row of pawl_workers joined, no row inserted: fenced. The row is locked until the statement has committed, so a
 *   reaper that comes meanwhile waits. (`LOCK IN SHARE MODE` applies to the tables of its own SELECT, not to subqueries.)
 * - A run that is not ours, or whose log does not end where it should, gets seq NULL: the column refuses it, and with it
 *   the whole statement. Which run it was is found out by the ordinary commit.
 * - LAST_INSERT_ID(…) brings the stamp back with the answer, doubled, and one more if a message waits for one of the runs;
 *   unless a trigger on the table has overwritten it. Then, and to learn which of several runs it is, the tables are asked.
 *
 * Many rows are looked at first (look.ts), without locks, and only the fence is checked again where they are inserted: as
 * long as it holds, no other worker can have taken a run or moved the end of its log. Compared with the same statements in
 * a transaction this saves its begin and end, and on MariaDB the block around a long INSERT, which costs 12 % of it.
 */
import type { Batch, CommitResult, Fence, Transition } from "../contract/store.js";
import type { Database } from "./database.js";
import { look, refusalOf } from "./look.js";
import { byKey, insertInOne, marks, type Sql, sql, type Value } from "./sql.js";
import { isDuplicateKey, isNullRefused } from "./trouble.js";
import { eventRow, eventsTable } from "./writes.js";

/** Beyond this many rows the derived table costs more than a second packet does. */
const mostSelfChecking = 16;

type Appending = Batch & { readonly fence: Fence };

export function isAppend(batch: Batch): batch is Appending {
  const { fence, transitions, starts } = batch;
  return fence !== null && starts.length === 0 && transitions.length > 0 && transitions.every(appendsOnly);
}

const appendsOnly = ({ next, events, drained, starts, mail, release, cursors }: Transition) =>
  next.kind === "keep" &&
  events.length > 0 &&
  drained.length + starts.length + mail.length + release.length + cursors.length === 0;

/** null: it must be looked at more closely; nothing was written. */
export async function append(db: Database, batch: Appending, now: string): Promise<CommitResult | null> {
  try {
    return batch.transitions.length > mostSelfChecking
      ? await appendMany(db, batch, now)
      : await appendFew(db, batch, now);
  } catch (error) {
    const { cause } = error as { cause?: unknown };
    if (cause !== undefined && (isNullRefused(cause) || isDuplicateKey(cause))) return null;
    throw error;
  }
}

async function appendFew(db: Database, batch: Appending, now: string): Promise<CommitResult> {
  const result = await db.write(selfCheckingInsert(batch, now));
  if (result === undefined || result.affected === 0) return { kind: "fenced" };
  const { insertId } = result;
  if (insertId === 0) return { ...written, at: await stampOf(db, batch), mailed: await mailedOf(db, batch) };
  const hasMail = insertId % 2 === 1;
  const isOne = batch.transitions.length === 1;
  const mailed = !hasMail ? [] : isOne ? [(batch.transitions[0] as Transition).runId] : await mailedOf(db, batch);
  return { ...written, at: Math.floor(insertId / 2), mailed };
}

async function appendMany(db: Database, batch: Appending, now: string): Promise<CommitResult | null> {
  const seen = await look(db.reader, batch, now);
  const refusal = refusalOf(batch, seen);
  if (refusal !== null) return refusal;
  const statement = fencedInsert(batch, seen.at);
  if (statement === null) return null;
  await db.write(statement);
  const mailed = batch.transitions.flatMap(({ runId }) => ((seen.tasks.get(runId)?.mail ?? 0) > 0 ? runId : []));
  return { ...written, at: seen.at, mailed };
}

const written = { kind: "committed", kept: [], refused: [] } as const;

async function stampOf(db: Database, { transitions }: Appending): Promise<number> {
  const [{ runId, after }] = transitions as [Transition];
  const [row] = await db.query("SELECT at FROM pawl_events WHERE run_id = ? AND seq = ?", [runId, after + 1]);
  return Number(row?.at);
}

/** Asked later than the commit: its runs' messages are all still there, because only their owner drains them. */
async function mailedOf(db: Database, { transitions }: Appending): Promise<readonly string[]> {
  const ids = transitions.map(({ runId }) => runId);
  const rows = await db.query(
    `SELECT run_id FROM pawl_tasks ${byKey} WHERE run_id IN (${marks(ids)}) AND mail > 0`,
    ids,
  );
  return rows.map((row) => row.run_id as string);
}

const columns = ["run_id", "seq", "span", "type", "node", "attempt", "outcome", "data"];
const firstRow = `SELECT ${columns.map((column) => `? AS ${column}`).join(", ")}`;
const nextRow = ` UNION ALL SELECT ${columns.map(() => "?").join(", ")}`;

const isOurs = "EXISTS (SELECT 1 FROM pawl_tasks t WHERE t.run_id = v.run_id AND t.owner = ? AND t.epoch = ?)";
const nextSeq =
  "COALESCE((SELECT e.seq + e.span FROM pawl_events e WHERE e.run_id = v.run_id ORDER BY e.seq DESC LIMIT 1), 1)";

const rowsOf = ({ transitions }: Appending): Value[][] =>
  transitions.toSorted((a, b) => (a.runId < b.runId ? -1 : 1)).map(eventRow);

function selfCheckingInsert(batch: Appending, now: string): Sql {
  const { workerId, epoch } = batch.fence;
  const rows = rowsOf(batch);
  const ids = rows.map(([runId]) => runId as string);
  const values: Value[] = [workerId, epoch, ...ids, ...rows.flat(), workerId, epoch];
  const isMailed = `EXISTS (SELECT 1 FROM pawl_tasks m ${byKey} WHERE m.run_id IN (${marks(ids)}) AND m.mail > 0)`;
  return sql(
    `INSERT INTO ${eventsTable} SELECT v.run_id, IF(${isOurs} AND ${nextSeq} = v.seq, v.seq, NULL), ` +
      `v.span, v.type, v.node, v.attempt, v.outcome, v.data, LAST_INSERT_ID(${now} * 2 + ${isMailed}) DIV 2 ` +
      `FROM (${firstRow}${nextRow.repeat(rows.length - 1)}) v ` +
      "JOIN pawl_workers w ON w.id = ? AND w.epoch = ? AND w.live = 1 LOCK IN SHARE MODE",
    values,
  );
}

const holdsFence = "SELECT 1 FROM pawl_workers WHERE id = ? AND epoch = ? AND live = 1 LOCK IN SHARE MODE";

/** All rows, the first of which is refused unless the fence holds; null if they are too large for one statement. */
function fencedInsert(batch: Appending, at: number): Sql | null {
  const { workerId, epoch } = batch.fence;
  const [[runId, seq, ...rest], ...others] = rowsOf(batch) as [Value[], ...Value[][]];
  const first = `(?, IF((${holdsFence}), ?, NULL), ${marks(rest)}, ?)`;
  return insertInOne(
    eventsTable,
    { text: first, values: [runId as Value, workerId, epoch, seq as Value, ...rest, at] },
    others.map((row) => [...row, at]),
  );
}
