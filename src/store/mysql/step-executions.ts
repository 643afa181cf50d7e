/**
 * The view `pawl_step_executions` on MySQL 8 and MariaDB (sql/step-executions.ts tells how it works): here its events are
 * unpacked.
 *
 * A row of one event has it in its columns, a row of several has them as tuples in `data`, which JSON_TABLE lists. (Not a
 * UNION of the two: before 8.0.29 MySQL moves no condition into one.) Half of a surrogate pair, which is in any error
 * message sooner or later, is no JSON here; U+FFFD takes its place, and that of U+0000. What is still no JSON counts as an
 * empty list, or as an event without data: one damaged row must not hide all the others.
 *
 * No literal has a backslash: what that means depends on the sql_mode, and a dump may be read under another one. What comes
 * from JSON_TABLE has its character set named, because MariaDB would take that of the database, and is compared byte for
 * byte as the columns are. INVOKER: the view must outlive the user who migrated. run_id stays as the tables have it,
 * binary, or no condition on it could be searched for.
 */
import { isRelevantEvent, rewindsIfReattempted, stepExecutionsQuery } from "../sql/step-executions.js";

const backslash = "CHAR(92 USING utf8mb4)";
const escaped = (code: string) => `CONCAT(${backslash}, '${code}')`;
const replacement = "CONVERT(0xEFBFBD USING utf8mb4)";

/** After escaped backslashes have become \u005c, what looks like an escape is one. Whole pairs are never escaped. */
const replaceInvalidEscapes = (
  json: string,
) => `CASE WHEN LOCATE(${escaped("u")}, ${json}) = 0 THEN ${json} ELSE REGEXP_REPLACE(
          REPLACE(REPLACE(${json}, CONCAT(${backslash}, ${backslash}), ${escaped("u005c")}), ${escaped("u0000")}, ${replacement}),
          CONCAT(${backslash}, ${escaped("ud[89a-f][0-9a-f]{2}")}),
          ${replacement}
        ) END`;
const jsonOrDefault = (fallback: string, json: string) =>
  `CASE WHEN JSON_VALID(${json}) THEN ${json} ELSE '${fallback}' END`;
const tupleOrColumn = (column: string, tuple: string) =>
  `CASE WHEN e.type = 'batch' THEN ${tuple} ELSE e.${column} END AS ${column}`;

const unpackedEvents = `
      SELECT e.run_id, e.seq + t.place - 1 AS n, e.at,
        ${tupleOrColumn("type", "CAST(t.type AS BINARY)")},
        ${tupleOrColumn("node", "CAST(t.node AS BINARY)")},
        ${tupleOrColumn("attempt", "t.attempt")},
        ${tupleOrColumn("outcome", "CAST(t.outcome AS BINARY)")},
        ${tupleOrColumn("data", "t.data COLLATE utf8mb4_bin")}
      FROM pawl_events e
      JOIN JSON_TABLE(CASE WHEN e.type = 'batch' THEN ${jsonOrDefault("[]", "e.data")} ELSE '[[]]' END, '$[*]' COLUMNS (
        place FOR ORDINALITY,
        type VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[0]',
        node VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[1]',
        attempt INT PATH '$[2]',
        outcome VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[3]',
        data LONGTEXT CHARACTER SET utf8mb4 PATH '$[4]'
      )) t`;

const eventsQuery = `
    SELECT u.run_id, u.n, u.at, u.type, u.node, COALESCE(u.attempt, 1) AS attempt, u.outcome,
      u.at + COALESCE(f.retry_ms, f.wait_ms) AS due_at,
      CASE WHEN f.passed_over_by IS NULL THEN u.at - COALESCE(f.ms, 0) END AS started_at,
      f.message
    FROM (
      SELECT run_id, n, at, type, node, attempt, outcome, ${replaceInvalidEscapes("data")} AS data
      FROM (${unpackedEvents}) AS unpacked
      WHERE ${isRelevantEvent}
    ) u
    JOIN JSON_TABLE(${jsonOrDefault("{}", "u.data")}, '$' COLUMNS (
      ms BIGINT PATH '$.ms',
      retry_ms BIGINT PATH '$.retryMs',
      wait_ms BIGINT PATH '$.waitMs',
      passed_over_by VARCHAR(20) CHARACTER SET utf8mb4 PATH '$.by',
      rewind VARCHAR(5) CHARACTER SET utf8mb4 PATH '$.rewind',
      message LONGTEXT CHARACTER SET utf8mb4 PATH '$.error.message'
    )) f
    WHERE ${rewindsIfReattempted("f.rewind = 'true'")}
  `;

const asText = (column: string) => `CONVERT(${column} USING utf8mb4)`;

export const stepExecutionsView = `CREATE OR REPLACE SQL SECURITY INVOKER VIEW pawl_step_executions AS ${stepExecutionsQuery(
  {
    tables: { runs: "pawl_runs", events: "pawl_events" },
    eventsQuery,
    lateral: "",
    executionId: (...parts) => asText(`CONCAT_WS(':', ${parts.join(", ")})`),
    asText,
  },
)}`;
