/** Births: rows for pawl_runs and pawl_tasks, and what happens when a key is taken. */
import { StoreError } from "../../core/errors/errors.js";
import type { Fence, NewRun, Refusal, RunRecord } from "../contract/store.js";
import { decodeRun, encodeTags, runColumns, taskState } from "../sql/records.js";
import { savepoint, toSavepoint } from "./block.js";
import type { Session } from "./session.js";
import { insert, marks, type Sql, sql, type Value } from "./sql.js";
import { isDuplicateKey } from "./trouble.js";

const runsTable =
  "pawl_runs (id, workflow, version, queue, priority, status, input, hero_type, hero_id, hero_key, start_key, tags, " +
  "parent_id, parent_node, parent_index, parent_attempt, created_at)";
const tasksTable =
  "pawl_tasks (run_id, workflow, version, priority, state, rank_no, due_at, owner, epoch, deliveries, mail, fresh)";

export interface Birthplace {
  readonly at: number;
  readonly fence: Fence | null;
}

/** The statements that make these runs; all fail if one of the runs or keys exists. */
export function birthStatements(runs: readonly NewRun[], { at, fence }: Birthplace): Sql[] {
  const sorted = runs.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return [
    ...insert(
      runsTable,
      sorted.map((run) => runRow(run, at)),
    ),
    ...insert(
      tasksTable,
      sorted.map((run) => taskRow(run, at, fence)),
    ),
  ];
}

function runRow(run: NewRun, at: number): Value[] {
  const { id, workflow, version, queue, priority, input, heroType, heroId, heroKey, startKey } = run;
  const birth = [id, workflow, version, queue, priority, "pending", input, heroType, heroId, heroKey, startKey];
  return [...birth, encodeTags(run.tags), run.parentId, run.parentNode, run.parentIndex, run.parentAttempt, at];
}

function taskRow(run: NewRun, at: number, fence: Fence | null): Value[] {
  const { priority, due } = run;
  const route = [run.id, run.route ?? run.workflow, run.version, priority];
  if (due.kind === "owned") {
    if (fence === null) throw new TypeError("A run can be born owned only in a fenced commit.");
    return [...route, taskState.owned, 0, null, fence.workerId, fence.epoch, 1, 0, 0];
  }
  const dueAt = dueOf(due, at);
  const isReady = dueAt !== null && dueAt <= at;
  const place = isReady ? [taskState.ready, -priority, dueAt] : [taskState.parked, 0, dueAt];
  return [...route, ...place, null, null, 0, 0, 1];
}

function dueOf(due: NewRun["due"], at: number): number | null {
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

/** Makes runs of which some cannot be made, as a duplicate key has told. Children come before the batch's own starts. */
export async function makeWhatCanBeMade(
  session: Session,
  { children, starts }: { readonly children: readonly NewRun[]; readonly starts: readonly NewRun[] },
  place: Birthplace,
): Promise<readonly Refusal[]> {
  for (let attempt = 1; ; attempt += 1) {
    const { born, refused } = await sortOut(session, children, starts, place.at);
    try {
      await session.run([savepoint, ...birthStatements(born, place)]);
      return refused;
    } catch (error) {
      // Again only because somebody was quicker between our look and our insert.
      if (!isDuplicateKey(error) || attempt === 5) throw error;
      await session.run([toSavepoint]);
    }
  }
}

/** What is left to be made, and what is refused: in the order given, the first with a key has it. */
async function sortOut(session: Session, children: readonly NewRun[], starts: readonly NewRun[], at: number) {
  const taken = new Taken(await takenBy(session, [...children, ...starts]));
  const born: NewRun[] = [];
  const refused: Refusal[] = [];
  const make = (run: NewRun) => {
    born.push(run);
    taken.add(newborn(run, at), run.heroKey);
  };
  for (const run of children) {
    if (taken.ids.has(run.id)) continue;
    const refusal = taken.refusal(run);
    if (refusal !== null) throw childRefused(run, refusal);
    make(run);
  }
  for (const run of starts) {
    if (taken.ids.has(run.id)) continue;
    const refusal = taken.refusal(run);
    if (refusal === null) make(run);
    else refused.push(refusal);
  }
  return { born, refused };
}

const childRefused = (run: NewRun, { reason, existing }: Refusal) =>
  new StoreError(
    `Child ${run.id} of ${run.parentId} was not started: run ${existing.id} of workflow ` +
      `${JSON.stringify(run.workflow)} has its ${reason === "startKey" ? "start key" : "hero"}.`,
    { transient: false },
  );

class Taken {
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

  refusal({ id, workflow, startKey, heroKey }: NewRun): Refusal | null {
    const byKey = startKey === null ? undefined : this.#startKeys.get(`${workflow}\u0000${startKey}`);
    if (byKey !== undefined) return { runId: id, reason: "startKey", existing: byKey };
    const byHero = heroKey === null ? undefined : this.#heroKeys.get(heroKey);
    return byHero === undefined ? null : { runId: id, reason: "heroKey", existing: byHero };
  }
}

/**
 * The runs that have one of the ids or keys, each by its own index. They are locked: in a transaction of the user's with
 * REPEATABLE READ a plain read might not see the row that is in the way. Their tasks are not (a subquery is a plain
 * read), because workers lock a task before its run, and the other order would be a deadlock.
 */
async function takenBy(session: Session, runs: readonly NewRun[]) {
  const select = `SELECT ${runColumns("pawl_tasks")}, r.hero_key FROM pawl_runs r FORCE INDEX`;
  const lookUps: Sql[] = [];
  for (let from = 0; from < runs.length; from += 500) {
    const part = runs.slice(from, from + 500);
    const ids = part.map((run) => run.id);
    const startKeys = part.flatMap(({ workflow, startKey }) => (startKey === null ? [] : [[workflow, startKey]]));
    const heroKeys = part.flatMap(({ heroKey }) => heroKey ?? []);
    const pairs = startKeys.map(() => "(?,?)").join(",");
    lookUps.push(sql(`${select} (PRIMARY) WHERE r.id IN (${marks(ids)}) LOCK IN SHARE MODE`, ids));
    if (startKeys.length > 0) {
      lookUps.push(
        sql(`${select} (start_key) WHERE (r.workflow, r.start_key) IN (${pairs}) LOCK IN SHARE MODE`, startKeys.flat()),
      );
    }
    if (heroKeys.length > 0) {
      lookUps.push(sql(`${select} (hero_key) WHERE r.hero_key IN (${marks(heroKeys)}) LOCK IN SHARE MODE`, heroKeys));
    }
  }
  const results = await session.run(lookUps);
  return results.flatMap(({ rows }) => rows.map((row) => ({ run: decodeRun(row), heroKey: row.hero_key as string })));
}

/** A run of this very batch, as a later start of the batch finds it in its way. */
function newborn(run: NewRun, at: number): RunRecord {
  const { due: _due, heroKey: _heroKey, ...birth } = run;
  const blank = { output: null, error: null, waiting: null, startedAt: null, finishedAt: null };
  return { ...birth, ...blank, status: run.due.kind === "owned" ? "running" : "pending", createdAt: at };
}
