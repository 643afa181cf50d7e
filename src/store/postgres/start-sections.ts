/** The sections of a commit that make runs. */
import { encodeTags, taskState } from "../sql/records.js";
import type { NewRun } from "../store.js";
import { plainArray, textArray } from "./arrays.js";
import type { Section } from "./statement.js";
import type { Work } from "./work.js";

const { parked, ready, owned } = taskState;

/**
 * Inserts runs, then the tasks of those that were inserted. That all were is the rule and is checked by a count; only
 * otherwise is each id looked for among the inserted ones (a join would be a nested loop over both, each time).
 */
const startSection = (letter: string, pick: (work: Work) => readonly NewRun[], onConflict: string): Section => ({
  letter,
  values: (work) => {
    const runs = pick(work);
    return runs.length === 0 ? null : startValues(runs);
  },
  parts: ({ tables, bind, workerId, epoch }) => {
    const arrays = columns.map(([, type]) => `${bind()}::${type}[]`);
    const own = `${bind()}::bool[]`;
    const dueAt = `${bind()}::int8[]`;
    const dueIn = `${bind()}::int8[]`;
    const count = bind();
    const names = columns.map(([name]) => name).join(", ");
    const array = (name: string) => arrays[columns.findIndex(([column]) => column === name)];
    const task = ["id", "workflow", "version", "priority"].map(array);
    const runs = `s${letter}`;
    return {
      writes: [
        `${runs} AS (INSERT INTO ${tables.runs} (${names}, status, created_at)
          SELECT u.*, 'pending', g.at FROM g, unnest(${arrays.join(", ")}) u(${names}) ${onConflict} RETURNING id)`,
        `t${letter} AS (INSERT INTO ${tables.tasks}
            (run_id, workflow, version, priority, state, due_at, owner, epoch, deliveries, mail, fresh)
          SELECT u.id, u.workflow, u.version, u.priority,
            CASE WHEN u.own THEN ${owned} WHEN u.due_at <= u.at THEN ${ready} ELSE ${parked} END,
            u.due_at, CASE WHEN u.own THEN ${workerId} END, CASE WHEN u.own THEN ${epoch} END, u.own::int, 0, NOT u.own
          FROM (SELECT u.*, g.at, coalesce(u.at_, g.at + u.in_) AS due_at
            FROM g, unnest(${task.join(", ")}, ${own}, ${dueAt}, ${dueIn}) u(id, workflow, version, priority, own, at_, in_)) u
          WHERE (SELECT count(*) FROM ${runs}) = ${count}::int OR u.id = ANY (ARRAY(SELECT id FROM ${runs})))`,
      ],
      columns: [`(SELECT count(*) FROM ${runs})::int AS ${runs}`],
    };
  },
});

/** A key that is taken keeps a start out, and the caller is told afterwards who has it. */
export const starts = startSection("s", ({ starts }) => starts, "ON CONFLICT DO NOTHING");

/** A child that exists is our own. A child whose keys are taken is a mistake, and an error. */
export const children = startSection("c", ({ children }) => children, "ON CONFLICT (id) DO NOTHING");

const columns: readonly (readonly [name: string, type: string, values: (runs: readonly NewRun[]) => string | null])[] =
  [
    ["id", "uuid", (runs) => plainArray(runs.map(({ id }) => id))],
    ["parent_id", "uuid", (runs) => plainArray(runs.map(({ parentId }) => parentId))],
    ["priority", "int4", (runs) => plainArray(runs.map(({ priority }) => priority))],
    ["parent_index", "int4", (runs) => plainArray(runs.map(({ parentIndex }) => parentIndex))],
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

function startValues(runs: readonly NewRun[]): readonly unknown[] {
  return [
    ...columns.map(([, , values]) => values(runs)),
    plainArray(runs.map(({ due }) => due.kind === "owned")),
    plainArray(runs.map(({ due }) => (due.kind === "at" ? Math.ceil(due.ms) : null))),
    plainArray(runs.map(({ due }) => (due.kind === "in" ? Math.ceil(due.ms) : due.kind === "now" ? 0 : null))),
    runs.length,
  ];
}
