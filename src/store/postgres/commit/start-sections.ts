/** The sections of a commit that make runs. */

import type { NewRun } from "../../contract/store.js";
import { encodeTags, taskState } from "../../sql/records.js";
import type { CommitWork } from "../commit-work.js";
import { plainArray, textArray } from "./arrays.js";
import type { Section, SectionContext } from "./statement.js";

const { parked, ready, owned } = taskState;

type SelectRuns = (work: CommitWork) => readonly NewRun[];

/**
 * Runs that are certainly new, which is the rule: no key can keep them out and their ids were never sent before. A plain
 * insert takes a third less of the server than one that looks for conflicts; should an id exist after all, the statement
 * fails as a whole and is sent again in the other form.
 */
const createNewRunSection = (letter: string, selectRuns: SelectRuns): Section => ({
  letter,
  values: (work) => valuesOf(work.areAllRunsNew ? selectRuns(work) : []),
  parts: (context) => {
    const { runs, tasks } = buildInserts(context);
    return { writes: [`s${letter} AS (${runs})`, `t${letter} AS (${tasks})`] };
  },
});

/**
 * Runs that may exist or be refused: tasks only for those that were inserted. That all were is the rule here too and is
 * checked by a count; only otherwise is each id looked for (a join would be a nested loop over both, each time).
 */
const createRunSection = (letter: string, selectRuns: SelectRuns, onConflict: string): Section => ({
  letter,
  values: (work) => valuesOf(work.areAllRunsNew ? [] : selectRuns(work)),
  parts: (context) => {
    const { runs, tasks, count } = buildInserts(context);
    const insertedCte = `s${letter}`;
    const isInserted = `(SELECT count(*) FROM ${insertedCte}) = ${count}::int OR u.id = ANY (ARRAY(SELECT id FROM ${insertedCte}))`;
    return {
      writes: [
        `${insertedCte} AS (${runs} ${onConflict} RETURNING id)`,
        `t${letter} AS (${tasks} WHERE ${isInserted})`,
      ],
      columns: [`(SELECT count(*) FROM ${insertedCte})::int AS ${insertedCte}`],
    };
  },
});

function buildInserts({ tables, bind, workerId, epoch }: SectionContext) {
  const arrays = columns.map(([, type]) => `${bind()}::${type}[]`);
  const isOwned = `${bind()}::bool[]`;
  const dueAt = `${bind()}::int8[]`;
  const dueIn = `${bind()}::int8[]`;
  const count = bind();
  const names = columns.map(([name]) => name).join(", ");
  const array = (name: string) => arrays[columns.findIndex(([column]) => column === name)];
  const task = [array("id"), `${bind()}::text[]`, array("version"), array("priority")];
  return {
    count,
    runs: `INSERT INTO ${tables.runs} (${names}, status, created_at)
      SELECT u.*, 'pending', g.at FROM g, unnest(${arrays.join(", ")}) u(${names})`,
    tasks: `INSERT INTO ${tables.tasks}
        (run_id, workflow, version, priority, state, due_at, owner, epoch, deliveries, pending_messages, fresh)
      SELECT u.id, u.workflow, u.version, u.priority,
        CASE WHEN u.own THEN ${owned} WHEN u.due_at <= u.at THEN ${ready} ELSE ${parked} END,
        u.due_at, CASE WHEN u.own THEN ${workerId} END, CASE WHEN u.own THEN ${epoch} END, u.own::int, 0, NOT u.own
      FROM (SELECT u.*, g.at, coalesce(u.at_, g.at + u.in_) AS due_at FROM g,
        unnest(${task.join(", ")}, ${isOwned}, ${dueAt}, ${dueIn}) u(id, workflow, version, priority, own, at_, in_)
        WHERE ${count}::int > 0) u`,
  };
}

export const newStartsSection = createNewRunSection("n", ({ starts }) => starts);
export const newChildrenSection = createNewRunSection("b", ({ children }) => children);

/** A key that is taken keeps a start out, and the caller is told afterwards who has it. */
export const startsSection = createRunSection("s", ({ starts }) => starts, "ON CONFLICT DO NOTHING");

/** A child that exists is our own. A child whose keys are taken is a mistake, and an error. */
export const childrenSection = createRunSection("c", ({ children }) => children, "ON CONFLICT (id) DO NOTHING");

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
