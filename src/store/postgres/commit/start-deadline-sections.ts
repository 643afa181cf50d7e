/** The sections of a commit that write by when the created runs must begin. Only runs with a deadline make them part of it. */
import type { NewRun } from "../../contract/store.js";
import type { CommitWork } from "../commit-work.js";
import { plainArray } from "./arrays.js";
import type { Section } from "./statement.js";

/** @param created the part of the statement that returns the ids of the created runs */
const createSection = (
  letter: string,
  created: string,
  selectRuns: (work: CommitWork) => readonly NewRun[],
): Section => ({
  letter,
  values: (work) => valuesOf(selectRuns(work)),
  parts: ({ tables, bind }) => {
    const arrays = ["uuid", "int8", "int8", "int8", "int8"].map((type) => `${bind()}::${type}[]`);
    const dueAt = "greatest(gate.at, coalesce(u.due_at, gate.at + u.due_in))";
    return {
      writes: [
        `deadlines_of_${created} AS (INSERT INTO ${tables.start_deadlines} (run_id, at)
          SELECT u.id, coalesce(u.start_by, ${dueAt} + u.start_in) FROM gate, unnest(${arrays.join(", ")}) u(id, due_at, due_in, start_by, start_in)
          WHERE u.id = ANY (ARRAY(SELECT id FROM ${created})))`,
      ],
    };
  },
});

export const startDeadlinesSection = createSection("t", "created_starts", ({ starts }) => starts);
export const childDeadlinesSection = createSection("g", "created_children", ({ children }) => children);

function valuesOf(runs: readonly NewRun[]): readonly unknown[] | null {
  const limited = runs.filter(({ startBy }) => startBy !== undefined);
  if (limited.length === 0) return null;
  const msOf = (time: { readonly kind: string; readonly ms?: number } | undefined, kind: string) =>
    time?.kind === kind ? Math.ceil(time.ms as number) : null;
  return [
    plainArray(limited.map(({ id }) => id)),
    plainArray(limited.map(({ due }) => msOf(due, "at"))),
    plainArray(limited.map(({ due }) => msOf(due, "in") ?? 0)),
    plainArray(limited.map(({ startBy }) => msOf(startBy, "at"))),
    plainArray(limited.map(({ startBy }) => msOf(startBy, "in"))),
  ];
}
