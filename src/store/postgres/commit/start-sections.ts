/** The sections of a commit that create runs. */

import type { RunClass } from "../../../core/limits/lane.js";
import { turnsPerMs } from "../../../core/limits/order.js";
import type { NewRun } from "../../contract/store.js";
import { isPlainRun } from "../../shared/plain-run.js";
import { encodeTags, taskState } from "../../sql/records.js";
import type { CommitWork } from "../commit-work.js";
import { plainArray, textArray } from "./arrays.js";
import type { Section, SectionContext } from "./statement.js";

const { parked, ready, owned } = taskState;

type SelectRuns = (work: CommitWork) => readonly NewRun[];

/**
 * Creates new runs that differ only in their ids and inputs, as those of one busy workflow do. Everything else is bound once,
 * and columns that are NULL are left out: each array that `unnest` reads costs the server 0.05 to 0.2 µs per run, and a start
 * without this section binds 21 of them.
 */
export const similarStartsSection: Section = {
  letter: "a",
  values: (work) => (areSimilarStarts(work) && !haveClasses(work.starts) ? similarValues(work.starts) : null),
  parts: (context) => {
    const similar = bindSimilarRuns(context);
    const { ids } = similar;
    return {
      writes: [
        createSimilarRuns(context, similar),
        `tasks_of_similar AS (${insertTasks(context, similar, similar.route)} FROM gate, unnest(${ids}) u(id))`,
      ],
    };
  },
};

/**
 * The same for runs of a workflow with limits, whose tasks wait in classes. A start must never wait for a worker: a class that an
 * admission is about to delete is skipped, and the tasks of its runs stay on the route of their workflow, where a worker
 * sorts them. FOR KEY SHARE lets admissions use the class, but not delete it before these tasks are committed.
 */
export const similarWaitingStartsSection: Section = {
  letter: "i",
  values: (work) =>
    areSimilarStarts(work) && haveClasses(work.starts)
      ? [...similarValues(work.starts), ...waitingValues(work.starts)]
      : null,
  parts: (context) => {
    const { tables, bind } = context;
    const similar = bindSimilarRuns(context);
    const { ids, route, version } = similar;
    const [classOfRun, classIds, lanes] = [`${bind()}::text[]`, `${bind()}::text[]`, `${bind()}::text[]`];
    const isOpenGate = "(SELECT gate.at FROM gate) IS NOT NULL";
    return {
      writes: [
        createSimilarRuns(context, similar),
        `locked_classes AS MATERIALIZED (SELECT c.id FROM ${tables.classes} c WHERE c.id = ANY (${classIds}) AND ${isOpenGate} FOR KEY SHARE SKIP LOCKED)`,
        // Sorted by id, because two starts that create the same classes wait for each other. Turns as in `firstTurnOfNew`.
        `created_classes AS (INSERT INTO ${tables.classes} (id, route, version, lanes, turn, blocked_on)
          SELECT u.id, ${route}, ${version}, u.lanes, gate.at * ${turnsPerMs} - cardinality(${classIds}) + u.n - 1, ''
          FROM gate, unnest(${classIds}, ${lanes}) WITH ORDINALITY u(id, lanes, n) LEFT JOIN locked_classes l ON l.id = u.id
          WHERE l.id IS NULL ORDER BY u.n ON CONFLICT (id) DO NOTHING RETURNING id)`,
        // In the order of the runs: those with the same priority and due time are admitted in the order of their rows.
        `tasks_of_similar AS (${insertTasks(context, similar, `coalesce(c.id, ${route})`)}
          FROM gate, unnest(${ids}, ${classOfRun}) WITH ORDINALITY u(id, class_id, n)
          LEFT JOIN (SELECT id FROM locked_classes UNION ALL SELECT id FROM created_classes) c ON c.id = u.class_id
          ORDER BY u.n)`,
      ],
    };
  },
};

interface SimilarRuns {
  readonly ids: string;
  readonly inputs: string;
  readonly route: string;
  readonly workflow: string;
  readonly version: string;
  readonly queue: string;
  readonly priority: string;
  readonly isOwned: string;
}

const bindSimilarRuns = ({ bind }: SectionContext): SimilarRuns => ({
  ids: `${bind()}::uuid[]`,
  inputs: `${bind()}::text[]`,
  route: `${bind()}::text`,
  workflow: `${bind()}::text`,
  version: `${bind()}::text`,
  queue: `${bind()}::text`,
  priority: `${bind()}::int4`,
  isOwned: `${bind()}::bool`,
});

const createSimilarRuns = ({ tables }: SectionContext, { ids, inputs, ...common }: SimilarRuns): string =>
  `created_similar AS (INSERT INTO ${tables.runs} (id, input, workflow, version, queue, priority, status, created_at)
    SELECT u.*, ${common.workflow}, ${common.version}, ${common.queue}, ${common.priority}, 'pending', gate.at
    FROM gate, unnest(${ids}, ${inputs}) u(id, input))`;

/** The INSERT up to its FROM clause. */
function insertTasks({ tables, workerId, epoch }: SectionContext, similar: SimilarRuns, route: string): string {
  const { version, priority, isOwned } = similar;
  const ifOwned = (value: string | number, otherwise: string | number) =>
    `CASE WHEN ${isOwned} THEN ${value} ELSE ${otherwise} END`;
  const stateOfTask = `${ifOwned(owned, ready)}, ${ifOwned("NULL", "gate.at")}, ${ifOwned(workerId, "NULL")}, ${ifOwned(epoch, "NULL")}`;
  return `INSERT INTO ${tables.tasks}
      (run_id, workflow, version, priority, state, due_at, owner, epoch, deliveries, pending_messages, fresh)
    SELECT u.id, ${route}, ${version}, ${priority}, ${stateOfTask}, ${isOwned}::int, 0, NOT ${isOwned}`;
}

const similarValues = (runs: readonly NewRun[]): readonly unknown[] => {
  const { workflow, version, queue, priority, due, route } = runs[0] as NewRun;
  return [
    plainArray(runs.map(({ id }) => id)),
    textArray(runs.map(({ input }) => input)),
    ...[route ?? workflow, workflow, version, queue, priority, due.kind === "owned"],
  ];
};

function waitingValues(runs: readonly NewRun[]): readonly unknown[] {
  const byId = new Map(runs.map(({ runClass }) => [(runClass as RunClass).id, runClass as RunClass]));
  const classes = [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  return [
    textArray(runs.map(({ runClass }) => (runClass as RunClass).id)),
    textArray(classes.map(({ id }) => id)),
    textArray(classes.map(({ lanes }) => JSON.stringify(lanes))),
  ];
}

const haveClasses = (runs: readonly NewRun[]): boolean => runs.every(({ runClass }) => runClass !== undefined);

function areSimilarStarts({ areAllRunsNew, starts }: CommitWork): boolean {
  const [first] = starts;
  if (!areAllRunsNew || first === undefined || (first.due.kind !== "now" && first.due.kind !== "owned")) return false;
  return starts.every(
    (run) =>
      isPlainRun(run) &&
      run.workflow === first.workflow &&
      run.version === first.version &&
      run.queue === first.queue &&
      run.priority === first.priority &&
      run.route === first.route &&
      run.due.kind === first.due.kind,
  );
}

/**
 * Creates runs that are assumed to be new: they have no keys, and usually their ids were not sent before. A plain
 * insert costs the server a third less than one that handles conflicts. If an id exists after all, the whole statement
 * fails and is sent again with the sections that handle conflicts.
 */
const createNewRunSection = (letter: string, name: string, selectRuns: SelectRuns): Section => ({
  letter,
  values: (work) => valuesOf(work.areAllRunsNew ? selectRuns(work) : []),
  parts: (context) => {
    const { runs, tasks } = buildInserts(context);
    return { writes: [`created_${name} AS (${runs})`, `tasks_of_${name} AS (${tasks})`] };
  },
});

/**
 * Creates runs that may exist already or be refused, and tasks only for the runs that were inserted. Usually all runs
 * were inserted, which a comparison of counts shows. Only otherwise is each id looked up; a join would always be a
 * nested loop.
 */
const createRunSection = (letter: string, name: string, selectRuns: SelectRuns, onConflict: string): Section => ({
  letter,
  values: (work) => valuesOf(work.areAllRunsNew ? [] : selectRuns(work)),
  parts: (context) => {
    const { runs, tasks, count } = buildInserts(context);
    const insertedCte = `created_${name}`;
    const isInserted = `(SELECT count(*) FROM ${insertedCte}) = ${count}::int OR u.id = ANY (ARRAY(SELECT id FROM ${insertedCte}))`;
    return {
      writes: [
        `${insertedCte} AS (${runs} ${onConflict} RETURNING id)`,
        `tasks_of_${name} AS (${tasks} WHERE ${isInserted})`,
      ],
      columns: [`(SELECT count(*) FROM ${insertedCte})::int AS ${insertedCte}`],
    };
  },
});

function buildInserts({ tables, bind, workerId, epoch }: SectionContext) {
  const arrays = columns.map(([, type]) => `${bind()}::${type}[]`);
  const isOwned = `${bind()}::bool[]`;
  const wakeAt = `${bind()}::int8[]`;
  const wakeIn = `${bind()}::int8[]`;
  const count = bind();
  const names = columns.map(([name]) => name).join(", ");
  const array = (name: string) => arrays[columns.findIndex(([column]) => column === name)];
  const taskArrays = [array("id"), `${bind()}::text[]`, array("version"), array("priority")];
  return {
    count,
    runs: `INSERT INTO ${tables.runs} (${names}, status, created_at)
      SELECT u.*, 'pending', gate.at FROM gate, unnest(${arrays.join(", ")}) u(${names})`,
    tasks: `INSERT INTO ${tables.tasks}
        (run_id, workflow, version, priority, state, due_at, owner, epoch, deliveries, pending_messages, fresh)
      SELECT u.id, u.workflow, u.version, u.priority,
        CASE WHEN u.is_owned THEN ${owned} WHEN u.due_at <= u.at THEN ${ready} ELSE ${parked} END,
        u.due_at, CASE WHEN u.is_owned THEN ${workerId} END, CASE WHEN u.is_owned THEN ${epoch} END, u.is_owned::int, 0, NOT u.is_owned
      FROM (SELECT u.*, gate.at, coalesce(u.wake_at, gate.at + u.wake_in) AS due_at FROM gate,
        unnest(${taskArrays.join(", ")}, ${isOwned}, ${wakeAt}, ${wakeIn}) u(id, workflow, version, priority, is_owned, wake_at, wake_in)
        WHERE ${count}::int > 0) u`,
  };
}

export const newStartsSection = createNewRunSection("n", "starts", (work) =>
  areSimilarStarts(work) ? [] : work.starts,
);
export const newChildrenSection = createNewRunSection("b", "children", ({ children }) => children);

/** A start whose key is taken is not inserted; `findKeyHolders` then finds the run that holds the key. */
export const startsSection = createRunSection("s", "starts", ({ starts }) => starts, "ON CONFLICT DO NOTHING");

/**
 * A child whose id exists was created by an earlier commit of its parent and is skipped. A child whose key is taken
 * makes the statement fail.
 */
export const childrenSection = createRunSection(
  "c",
  "children",
  ({ children }) => children,
  "ON CONFLICT (id) DO NOTHING",
);

const columns: readonly (readonly [name: string, type: string, values: (runs: readonly NewRun[]) => string | null])[] =
  [
    ["id", "uuid", (runs) => plainArray(runs.map(({ id }) => id))],
    ["parent_id", "uuid", (runs) => plainArray(runs.map(({ parentId }) => parentId))],
    ["priority", "int4", (runs) => plainArray(runs.map(({ priority }) => priority))],
    ["parent_index", "int4", (runs) => plainArray(runs.map(({ parentIndex }) => parentIndex))],
    ["parent_attempt", "int4", (runs) => plainArray(runs.map(({ parentAttempt }) => parentAttempt))],
    ["workflow", "text", (runs) => textArray(runs.map(({ workflow }) => workflow))],
    ["version", "text", (runs) => textArray(runs.map(({ version }) => version))],
    ["queue", "text", (runs) => textArray(runs.map(({ queue }) => queue))],
    ["hero_type", "text", (runs) => textArray(runs.map(({ heroType }) => heroType))],
    ["hero_id", "text", (runs) => textArray(runs.map(({ heroId }) => heroId))],
    ["hero_key", "text", (runs) => textArray(runs.map(({ heroKey }) => heroKey))],
    ["start_key", "text", (runs) => textArray(runs.map(({ startKey }) => startKey))],
    ["parent_node", "text", (runs) => textArray(runs.map(({ parentNode }) => parentNode))],
    ["tags", "text", (runs) => textArray(runs.map(({ tags }) => encodeTags(tags)))],
    ["started_by", "text", (runs) => textArray(runs.map(({ startedBy }) => startedBy ?? null))],
    ["schedule", "text", (runs) => textArray(runs.map(({ schedule }) => schedule ?? null))],
    ["input", "text", (runs) => textArray(runs.map(({ input }) => input))],
  ];

function valuesOf(runs: readonly NewRun[]): readonly unknown[] | null {
  if (runs.length === 0) return null;
  return [
    ...columns.map(([, , values]) => values(runs)),
    plainArray(runs.map(({ due }) => due.kind === "owned")),
    plainArray(runs.map(({ due }) => (due.kind === "at" ? Math.ceil(due.ms) : null))),
    plainArray(runs.map(({ due }) => (due.kind === "in" ? Math.ceil(due.ms) : due.kind === "now" ? 0 : null))),
    runs.length,
    textArray(runs.map(({ route, workflow }) => route ?? workflow)),
  ];
}
