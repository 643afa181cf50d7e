/**
 * The view `pawl_step_executions` on MySQL 8 and MariaDB. sql/step-executions.ts explains how it works; this file
 * unpacks its events.
 *
 * A row of pawl_events with one event stores it in the row's columns. A row with several events stores them as tuples
 * in `data`, which JSON_TABLE lists. (It is not a UNION of the two kinds, because MySQL before 8.0.29 pushes no
 * condition into a UNION.) Half of a surrogate pair, which occurs in error messages, is invalid JSON here; it is
 * replaced by U+FFFD, and so is U+0000. The view treats JSON that is still invalid as an empty list, or as an event
 * without data, because one damaged row must not hide all the others.
 *
 * No literal contains a backslash, because its meaning depends on the sql_mode, and a dump may be restored under
 * another one. Columns of JSON_TABLE name their character set, because MariaDB's default is that of the database, and
 * they are compared byte for byte as the tables' columns are. The view has INVOKER security so that it survives the
 * user who ran the migration. run_id stays binary as in the tables, because otherwise a condition on it could not use
 * an index.
 */
import { isRelevantEvent, rewindsIfReattempted, stepExecutionsQuery } from "../sql/step-executions.js";

const backslash = "CHAR(92 USING utf8mb4)";
const escaped = (code: string) => `CONCAT(${backslash}, '${code}')`;
const replacement = "CONVERT(0xEFBFBD USING utf8mb4)";

/**
 * Escaped backslashes become \u005c first, so that every remaining \u is an escape. JSON.stringify does not escape complete
 * surrogate pairs, so every escaped surrogate is half of a pair, and is replaced.
 */
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
      SELECT e.run_id, e.seq + t.ordinal - 1 AS n, e.at,
        ${tupleOrColumn("type", "CAST(t.type AS BINARY)")},
        ${tupleOrColumn("node", "CAST(t.node AS BINARY)")},
        ${tupleOrColumn("attempt", "t.attempt")},
        ${tupleOrColumn("outcome", "CAST(t.outcome AS BINARY)")},
        ${tupleOrColumn("data", "t.data COLLATE utf8mb4_bin")}
      FROM pawl_events e
      JOIN JSON_TABLE(CASE WHEN e.type = 'batch' THEN ${jsonOrDefault("[]", "e.data")} ELSE '[[]]' END, '$[*]' COLUMNS (
        ordinal FOR ORDINALITY,
        type VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[0]',
        node VARCHAR(1024) CHARACTER SET utf8mb4 PATH '$[1]',
        attempt INT PATH '$[2]',
        outcome VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[3]',
        data LONGTEXT CHARACTER SET utf8mb4 PATH '$[4]'
      )) t`;

const eventsQuery = `
    SELECT u.run_id, u.n, u.at, u.type, u.node, COALESCE(u.attempt, 1) AS attempt, u.outcome,
      u.at + COALESCE(f.retry_ms, f.wait_ms) AS due_at,
      CASE WHEN f.skipped_by IS NULL THEN u.at - COALESCE(f.ms, 0) END AS started_at,
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
      skipped_by VARCHAR(20) CHARACTER SET utf8mb4 PATH '$.by',
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
