/**
 * The view `pawl_step_executions` on SQLite. sql/step-executions.ts explains how it works; this file unpacks its
 * events.
 *
 * A row of pawl_events with one event stores it in the row's columns. A row with several events stores them as tuples
 * in `data`, which json_each lists. The view treats invalid JSON as an empty list, or as an event without data, because
 * one damaged row must not hide all the others.
 *
 * In the text of an error, U+0000 becomes U+FFFD: SQLite stores U+0000, but its functions treat it as the end of the
 * text. Half of a surrogate pair is returned unchanged, and clients show U+FFFD for it.
 */
import { isRelevantEvent, rewindsIfReattempted, stepExecutionsQuery } from "../sql/step-executions.js";

/** Escaped backslashes become \u005c first, so that every \u0000 that remains is an escape and not literal text. */
const replaceNulCharacters = (json: string) =>
  String.raw`replace(replace(${json}, '\\', '\u005c'), '\u0000', '\ufffd')`;
const jsonOrDefault = (fallback: string, json: string) =>
  `CASE WHEN json_valid(${json}) THEN ${json} ELSE '${fallback}' END`;

const unpackedEvents = `
      SELECT run_id, seq AS n, at, type, node, attempt, outcome, data FROM pawl_events WHERE type <> 'batch'
      UNION ALL
      SELECT e.run_id, e.seq + t.key, e.at, t.value ->> 0, t.value ->> 1, t.value ->> 2, t.value ->> 3, t.value ->> 4
      FROM pawl_events e, json_each(${jsonOrDefault("[]", "e.data")}) t
      WHERE e.type = 'batch' AND t.type = 'array'`;

const eventsQuery = `
    SELECT run_id, n, at, type, node, coalesce(attempt, 1) AS attempt, outcome,
      at + coalesce(data ->> 'retryMs', data ->> 'waitMs') AS due_at,
      CASE WHEN data ->> 'by' IS NULL THEN at - coalesce(data ->> 'ms', 0) END AS started_at,
      data ->> '$.error.message' AS message
    FROM (
      SELECT run_id, n, at, type, node, attempt, outcome, ${jsonOrDefault("{}", replaceNulCharacters("data"))} AS data
      FROM (${unpackedEvents})
      WHERE ${isRelevantEvent}
    )
    WHERE ${rewindsIfReattempted("data ->> 'rewind'")}
  `;

export const stepExecutionsView = `CREATE VIEW pawl_step_executions AS ${stepExecutionsQuery({
  tables: { runs: "pawl_runs", events: "pawl_events" },
  eventsQuery,
  lateral: "",
  executionId: (...parts) => parts.join(" || ':' || "),
  asText: (column) => column,
})}`;
