/** The sections of a commit that append to logs and overwrite cursors. */

import type { CommitWork, RunCursor } from "../commit-work.js";
import { plainArray, textArray } from "./arrays.js";
import type { Section, SectionContext, SectionParts } from "./statement.js";

/**
 * Appends events and checks where each log ends. The insert has no ON CONFLICT clause: an event number that is taken
 * aborts the whole statement, and the error names the run (ON CONFLICT DO NOTHING would leave gaps). The end of the log
 * is checked although a worker is the only writer of its runs, because a standby that takes over may have lost the end.
 */
export const eventsSection: Section = {
  letter: "e",
  values: (work) => (work.events.length === 0 || work.areLogEndsKnown ? null : eventValues(work)),
  parts: (context) => appendParts(context, true),
};

/**
 * Appends events to logs whose end this process has written itself. The check is left out: it would cost the server 2
 * µs per step, and each new connection has already checked that the last write still exists (lost-write-detector.ts).
 */
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
      `inserted_events AS (INSERT INTO ${tables.events} (${columns}, at) SELECT u.*, gate.at FROM gate, unnest(${arrays.join(", ")}) u(${columns}))`,
    ],
  };
}

const logEndCheck = (table: string, ids: string, seqs: string) =>
  `NOT EXISTS (SELECT 1 FROM unnest(${ids}, ${seqs}) u(run_id, seq) WHERE u.seq <> 1 + coalesce((
    SELECT e.seq + e.span - 1 FROM ${table} e WHERE e.run_id = u.run_id ORDER BY e.seq DESC LIMIT 1), 0))`;

/** A write that names only one of the two columns must leave the other as it is, so each combination has a section. */
const createCursorSection = (letter: string, columns: readonly ("cursor" | "progress")[]): Section => {
  const matchingCursors = ({ cursors }: CommitWork): readonly RunCursor[] =>
    cursors.filter((row) =>
      (["cursor", "progress"] as const).every((column) => column in row === columns.includes(column)),
    );
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
      const assignments = [...columns, "at"].map((column) => `${column} = excluded.${column}`);
      return {
        writes: [
          `cursors_${letter} AS (INSERT INTO ${tables.cursors} (run_id, ${names.join(", ")}, at)
            SELECT u.*, gate.at FROM gate, unnest(${arrays.join(", ")}) u(run_id, ${names.join(", ")})
            ON CONFLICT (run_id, node) DO UPDATE SET ${assignments.join(", ")})`,
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
