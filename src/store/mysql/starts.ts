/** Creates runs: rows in pawl_runs and pawl_tasks, and refusals when a key is taken. */
import { StoreError } from "../../core/errors/errors.js";
import { startDeadlineOf } from "../../core/run/transition.js";
import type { Fence, NewRun, RefusedStart, RunRecord } from "../contract/store.js";
import { isPlainRun } from "../shared/plain-run.js";
import { decodeRun, encodeTags, runColumns, taskState } from "../sql/records.js";
import { isDuplicateKey } from "./errors.js";
import type { Session } from "./session.js";
import { insertStatements, placeholders, type Sql, sql, type Value } from "./sql.js";
import { rollbackToSavepoint, savepoint } from "./transaction-block.js";

const commonColumns = "id, workflow, version, queue, priority, status, input, created_at";
const rareColumns =
  "hero_type, hero_id, hero_key, start_key, tags, parent_id, parent_node, parent_index, parent_attempt";
const plainRunsTable = `pawl_runs (${commonColumns})`;
const runsTable = `pawl_runs (${commonColumns}, ${rareColumns})`;
const runsTableWithOrigin = `pawl_runs (${commonColumns}, ${rareColumns}, started_by, schedule)`;
const tasksTable = "pawl_tasks (run_id, workflow, version, priority, state, rank_no, due_at, fresh)";
const ownedTasksTable = tasksTable.replace(")", ", owner, epoch, deliveries)");

export interface RunInsertContext {
  readonly at: number;
  readonly fence: Fence | null;
}

/**
 * Returns the statements that create these runs. They fail with a duplicate key if another run has one of the ids or
 * keys.
 */
export function insertRunStatements(runs: readonly NewRun[], { at, fence }: RunInsertContext): Sql[] {
  const sorted = runs.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return [
    ...insertStatements(...runRows(sorted, at)),
    ...insertStatements(...taskRows(sorted, at, fence)),
    ...insertStatements(
      "pawl_start_deadlines (run_id, at)",
      sorted.flatMap((run) => (run.startBy === undefined ? [] : [[run.id, startDeadlineOf(run, at)]])),
    ),
  ];
}

/**
 * Waits for open transactions that have inserted these keys. An INSERT would wait for them as well, but with a lock on the gap
 * before the key, and all starts without a key, whose NULLs are in that gap, would wait behind it. In READ COMMITTED, a
 * locking read locks the record alone.
 */
export function waitForKeysStatements(runs: readonly NewRun[]): Sql[] {
  const startKeys = runs.flatMap(({ workflow, startKey }) => (startKey === null ? [] : [[workflow, startKey]]));
  const heroKeys = runs.flatMap(({ heroKey }) => heroKey ?? []);
  const statements: Sql[] = [];
  const lock = "LOCK IN SHARE MODE";
  if (startKeys.length > 0) {
    const pairs = startKeys.map(() => "(?,?)").join(",");
    const where = `WHERE (workflow, start_key) IN (${pairs})`;
    statements.push(sql(`SELECT 1 FROM pawl_runs FORCE INDEX (start_key) ${where} ${lock}`, startKeys.flat()));
  }
  if (heroKeys.length > 0) {
    const where = `WHERE hero_key IN (${placeholders(heroKeys)})`;
    statements.push(sql(`SELECT 1 FROM pawl_runs FORCE INDEX (hero_key) ${where} ${lock}`, heroKeys));
  }
  return statements;
}

/** Returns the table with the columns that at least one of the runs needs, and their values. */
function runRows(runs: readonly NewRun[], at: number): [tableAndColumns: string, rows: Value[][]] {
  if (runs.every(isPlainRun)) return [plainRunsTable, runs.map((run) => commonValues(run, at))];
  if (!runs.some(hasOrigin)) return [runsTable, runs.map((run) => [...commonValues(run, at), ...rareValues(run)])];
  const rows = runs.map((run) => [
    ...commonValues(run, at),
    ...rareValues(run),
    run.startedBy ?? null,
    run.schedule ?? null,
  ]);
  return [runsTableWithOrigin, rows];
}

const hasOrigin = ({ startedBy, schedule }: NewRun) => startedBy !== undefined || schedule !== undefined;

const commonValues = ({ id, workflow, version, queue, priority, input }: NewRun, at: number): Value[] => [
  id,
  workflow,
  version,
  queue,
  priority,
  "pending",
  input,
  at,
];

const rareValues = (run: NewRun): Value[] => [
  ...[run.heroType, run.heroId, run.heroKey, run.startKey, encodeTags(run.tags)],
  ...[run.parentId, run.parentNode, run.parentIndex, run.parentAttempt],
];

/** Tasks without an owner have the defaults of the other columns. */
function taskRows(
  runs: readonly NewRun[],
  at: number,
  fence: Fence | null,
): [tableAndColumns: string, rows: Value[][]] {
  const isOwned = ({ due }: NewRun) => due.kind === "owned";
  if (!runs.some(isOwned)) return [tasksTable, runs.map((run) => taskRow(run, at))];
  if (fence === null) throw new TypeError("A run can be created as owned only in a commit with a fence.");
  const rows = runs.map((run) => {
    const ownership = isOwned(run) ? [fence.workerId, fence.epoch, 1] : [null, null, 0];
    return [...taskRow(run, at), ...ownership];
  });
  return [ownedTasksTable, rows];
}

function taskRow(run: NewRun, at: number): Value[] {
  const { priority, due } = run;
  const route = run.route ?? run.workflow;
  if (due.kind === "owned") return [run.id, route, run.version, priority, taskState.owned, 0, null, 0];
  const dueAt = dueAtOf(due, at);
  const isReady = dueAt !== null && dueAt <= at;
  const [state, rank] = isReady ? [taskState.ready, -priority] : [taskState.parked, 0];
  return [run.id, route, run.version, priority, state, rank, dueAt, 1];
}

function dueAtOf(due: NewRun["due"], at: number): number | null {
  switch (due.kind) {
    case "now":
      return at;
    case "at":
      return due.ms;
    case "in":
      return at + due.ms;
    default:
      return null;
  }
}

interface StartedWithFreeKeys {
  readonly refused: readonly RefusedStart[];
  /** The runs among the children and starts that have existed before and have ended. */
  readonly endedIds: ReadonlySet<string>;
}

/**
 * Called after a duplicate key: creates the runs whose ids and keys are free, and returns the starts that it refused.
 * Children get their keys before the starts of the batch.
 */
export async function startRunsWithFreeKeys(
  session: Session,
  { children, starts }: { readonly children: readonly NewRun[]; readonly starts: readonly NewRun[] },
  context: RunInsertContext,
): Promise<StartedWithFreeKeys> {
  for (let attempt = 1; ; attempt += 1) {
    const { accepted, ...result } = await partitionStarts(session, children, starts, context.at);
    try {
      await session.run([savepoint, ...insertRunStatements(accepted, context)]);
      return result;
    } catch (error) {
      // Another transaction may have inserted a run with the same key between the read and the insert; a repeated read
      // finds that run.
      if (!isDuplicateKey(error) || attempt === 5) throw error;
      await session.run([rollbackToSavepoint]);
    }
  }
}

/** Divides the runs into those to create and those to refuse. Of several runs with the same key, the first gets it. */
async function partitionStarts(session: Session, children: readonly NewRun[], starts: readonly NewRun[], at: number) {
  const takenRows = await readTakenKeys(session, [...children, ...starts]);
  const takenKeys = new TakenKeys(takenRows);
  const endedIds = new Set(takenRows.flatMap(({ run }) => (run.finishedAt === null ? [] : [run.id])));
  const accepted: NewRun[] = [];
  const refused: RefusedStart[] = [];
  const accept = (run: NewRun) => {
    accepted.push(run);
    takenKeys.add(newRunRecordOf(run, at), run.heroKey);
  };
  for (const run of children) {
    if (takenKeys.ids.has(run.id)) continue;
    const refusal = takenKeys.refusalOf(run);
    if (refusal !== null) throw childRefusedError(run, refusal);
    accept(run);
  }
  for (const run of starts) {
    if (takenKeys.ids.has(run.id)) continue;
    const refusal = takenKeys.refusalOf(run);
    if (refusal === null) accept(run);
    else refused.push(refusal);
  }
  return { accepted, refused, endedIds };
}

const childRefusedError = (run: NewRun, { reason, existing }: RefusedStart) =>
  new StoreError(
    `Child ${run.id} of ${run.parentId} was not started: run ${existing.id} of workflow ` +
      `${JSON.stringify(run.workflow)} has its ${reason === "startKey" ? "start key" : "hero"}.`,
    { transient: false },
  );

class TakenKeys {
  readonly ids = new Set<string>();
  readonly #startKeys = new Map<string, RunRecord>();
  readonly #heroKeys = new Map<string, RunRecord>();

  constructor(rows: readonly { readonly run: RunRecord; readonly heroKey: string | null }[]) {
    for (const { run, heroKey } of rows) this.add(run, heroKey);
  }

  add(run: RunRecord, heroKey: string | null): void {
    this.ids.add(run.id);
    if (run.startKey !== null) this.#startKeys.set(`${run.workflow}\u0000${run.startKey}`, run);
    if (heroKey !== null) this.#heroKeys.set(heroKey, run);
  }

  refusalOf({ id, workflow, startKey, heroKey }: NewRun): RefusedStart | null {
    const startKeyOwner = startKey === null ? undefined : this.#startKeys.get(`${workflow}\u0000${startKey}`);
    if (startKeyOwner !== undefined) return { runId: id, reason: "startKey", existing: startKeyOwner };
    const heroKeyOwner = heroKey === null ? undefined : this.#heroKeys.get(heroKey);
    return heroKeyOwner === undefined ? null : { runId: id, reason: "heroKey", existing: heroKeyOwner };
  }
}

/**
 * Reads the runs that have one of the ids or keys, each by its own index. The reads lock: in a user's transaction with
 * REPEATABLE READ, a plain read might not see the conflicting row. They do not lock the tasks (a subquery is a plain
 * read), because workers lock a task before its run, and the opposite order could deadlock.
 */
async function readTakenKeys(session: Session, runs: readonly NewRun[]) {
  const select = `SELECT ${runColumns("pawl_tasks")}, r.hero_key FROM pawl_runs r FORCE INDEX`;
  const lookups: Sql[] = [];
  for (let from = 0; from < runs.length; from += 500) {
    const part = runs.slice(from, from + 500);
    const ids = part.map((run) => run.id);
    const startKeys = part.flatMap(({ workflow, startKey }) => (startKey === null ? [] : [[workflow, startKey]]));
    const heroKeys = part.flatMap(({ heroKey }) => heroKey ?? []);
    const pairs = startKeys.map(() => "(?,?)").join(",");
    lookups.push(sql(`${select} (PRIMARY) WHERE r.id IN (${placeholders(ids)}) LOCK IN SHARE MODE`, ids));
    if (startKeys.length > 0) {
      lookups.push(
        sql(`${select} (start_key) WHERE (r.workflow, r.start_key) IN (${pairs}) LOCK IN SHARE MODE`, startKeys.flat()),
      );
    }
    if (heroKeys.length > 0) {
      lookups.push(
        sql(`${select} (hero_key) WHERE r.hero_key IN (${placeholders(heroKeys)}) LOCK IN SHARE MODE`, heroKeys),
      );
    }
  }
  const results = await session.run(lookups);
  return results.flatMap(({ rows }) => rows.map((row) => ({ run: decodeRun(row), heroKey: row.hero_key as string })));
}

/** The record of a run that this batch creates, for the refusal of a later start in the same batch. */
function newRunRecordOf(run: NewRun, at: number): RunRecord {
  const { due: _due, heroKey: _heroKey, startBy: _startBy, ...runFields } = run;
  const emptyFields = { output: null, error: null, waiting: null, startedAt: null, finishedAt: null };
  return { ...runFields, ...emptyFields, status: run.due.kind === "owned" ? "running" : "pending", createdAt: at };
}
