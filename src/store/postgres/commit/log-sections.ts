/** The sections of a commit that append to logs and overwrite cursors. */

import type { CommitWork, RunCursor } from "../commit-work.js";
import { plainArray, textArray } from "./arrays.js";
import type { Section, SectionContext, SectionParts } from "./statement.js";

/**
 * A plain insert: a number that is taken aborts the whole statement, and the error names the run. (ON CONFLICT DO NOTHING
 * would leave holes.) That the log really ends there is looked at, too, although a worker is the only writer of its runs: a
 * standby that takes over may have lost the end of it. Not where this process has written the end itself: that it is still
 * there was asked when the connection was opened (`history.ts`), and looking for it costs the server 2 µs a step.
 */
export const eventsSection: Section = {
  letter: "e",
  values: (work) => (work.events.length === 0 || work.areLogEndsKnown ? null : eventValues(work)),
  parts: (context) => appendParts(context, true),
};

export const ownEventsSection: Section = {
  letter: "o",
  values: (work) => (work.events.length > 0 && work.areLogEndsKnown ? eventValues(work) : null),
  parts: (context) => appendParts(context, false),
};

const eventValues = ({ events: rows }: CommitWork): readonly unknown[] => [
  plainArray(rows.map(({ runId }) => runId)),
  plainArray(rows.map(({ seq }) => seq)),
  plainArray(rows.map(({ span }) => span)),
  plainArray(rows.map(({ attempt }) => attempt)),
  textArray(rows.map(({ type }) => type)),
  textArray(rows.map(({ node }) => node)),
  textArray(rows.map(({ outcome }) => outcome)),
  textArray(rows.map(({ data }) => data)),
];

function appendParts({ tables, bind }: SectionContext, checksLogEnd: boolean): SectionParts {
  const types = ["uuid", "int4", "int4", "int4", "text", "text", "text", "text"];
  const arrays = types.map((type) => `${bind()}::${type}[]`);
  const columns = "run_id, seq, span, attempt, type, node, outcome, data";
  return {
    checks: checksLogEnd ? [logEndCheck(tables.events, arrays[0] as string, arrays[1] as string)] : [],
    writes: [
      `ev AS (INSERT INTO ${tables.events} (${columns}, at) SELECT u.*, g.at FROM g, unnest(${arrays.join(", ")}) u(${columns}))`,
    ],
  };
}

const logEndCheck = (table: string, ids: string, seqs: string) =>
  `NOT EXISTS (SELECT 1 FROM unnest(${ids}, ${seqs}) u(run_id, seq) WHERE u.seq <> 1 + coalesce((
    SELECT e.seq + e.span - 1 FROM ${table} e WHERE e.run_id = u.run_id ORDER BY e.seq DESC LIMIT 1), 0))`;

/** A column that is not given stays as it is, so there is one section for each set of columns. */
const createCursorSection = (letter: string, columns: readonly ("cursor" | "progress")[]): Section => {
  const matchingCursors = ({ cursors }: CommitWork): readonly RunCursor[] =>
    cursors.filter((row) => (["cursor", "progress"] as const).every((one) => one in row === columns.includes(one)));
  return {
    letter,
    values: (work) => {
      const rows = matchingCursors(work);
      if (rows.length === 0) return null;
      return [
        plainArray(rows.map(({ runId }) => runId)),
        textArray(rows.map(({ node }) => node)),
        ...columns.map((column) => textArray(rows.map((row) => row[column] ?? null))),
      ];
    },
    parts: ({ tables, bind }) => {
      const names = ["node", ...columns];
      const arrays = [`${bind()}::uuid[]`, ...names.map(() => `${bind()}::text[]`)];
      const sets = [...columns, "at"].map((column) => `${column} = excluded.${column}`);
      return {
        writes: [
          `cu${letter} AS (INSERT INTO ${tables.cursors} (run_id, ${names.join(", ")}, at)
            SELECT u.*, g.at FROM g, unnest(${arrays.join(", ")}) u(run_id, ${names.join(", ")})
            ON CONFLICT (run_id, node) DO UPDATE SET ${sets.join(", ")})`,
        ],
      };
    },
  };
};

export const cursorSections: readonly Section[] = [
  createCursorSection("u", ["cursor", "progress"]),
  createCursorSection("v", ["cursor"]),
  createCursorSection("w", ["progress"]),
  createCursorSection("x", []),
];
