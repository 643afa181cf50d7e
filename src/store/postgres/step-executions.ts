/**
 * The view `pawl_step_executions` on PostgreSQL: how its events are unpacked (sql/step-executions.ts explains the
 * view).
 *
 * For each run (LATERAL), the view finds the events by the primary key. Whichever runs a query selects (one run, those
 * of a workflow or of a hero), PostgreSQL reads no other logs.
 *
 * A row with one event has the event in its columns; a row with several events has them as tuples in `data`. PostgreSQL
 * fails the whole statement at the first text that it does not accept as JSON, and that includes \u0000 and halves of
 * surrogate pairs, which occur in error messages sooner or later. So the function `pawl_json` parses the text: it
 * replaces those characters by U+FFFD and returns NULL for text that cannot be parsed at all, so that one damaged row
 * does not hide all others. (IS JSON could detect such text, but only from PostgreSQL 16 on.)
 */
import { isRelevantEvent, rewindsIfReattempted, stepExecutionsQuery } from "../sql/step-executions.js";
import { quoteName, type Tables } from "./tables.js";

export function stepExecutionsView(tables: Tables): readonly string[] {
  const schema = quoteName(tables.schema);
  const json = `${schema}.pawl_json`;
  const query = stepExecutionsQuery({
    tables,
    eventsQuery: eventsQuery(tables.events, json),
    lateral: "LATERAL",
    executionId: (...parts) => `concat_ws(':', ${parts.join(", ")})`,
    asText: (column) => column,
  });
  return [createJsonFunction(json), `CREATE VIEW ${schema}.pawl_step_executions AS ${query}`];
}

/**
 * Once escaped backslashes are replaced by \u005c, every \u begins an escape. JSON.stringify never escapes complete
 * surrogate pairs, so every escaped surrogate is half of a pair.
 */
const createJsonFunction = (
  name: string,
) => String.raw`CREATE FUNCTION ${name}(text) RETURNS json LANGUAGE plpgsql IMMUTABLE STRICT AS $$
  BEGIN
    IF strpos($1, '\u') = 0 THEN
      RETURN $1::json;
    END IF;
    RETURN regexp_replace(
      replace(replace($1, '\\', '\u005c'), '\u0000', '\ufffd'), '\\ud[89a-f][0-9a-f]{2}', '\\ufffd', 'g')::json;
  EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
  END $$`;

/** NULL replaces JSON of another type, for which json_to_record and json_array_elements would fail. */
const ofType = (type: "array" | "object", json: string) => `CASE json_typeof(${json}) WHEN '${type}' THEN ${json} END`;
const parseMs = (text: string) => `CASE WHEN ${text} ~ '^[0-9]{1,16}$' THEN ${text}::bigint END`;
const parseAttempt = (text: string) => `CASE WHEN ${text} ~ '^[0-9]{1,9}$' THEN (${text})::integer END`;

const eventsQuery = (events: string, json: string) => `
    SELECT u.run_id, u.n, u.at, u.type, u.node, coalesce(u.attempt, 1) AS attempt, u.outcome,
      u.at + coalesce(${parseMs(`f."retryMs"`)}, ${parseMs(`f."waitMs"`)}) AS due_at,
      CASE WHEN f.by IS NULL THEN u.at - coalesce(${parseMs("f.ms")}, 0) END AS started_at,
      f.error ->> 'message' AS message
    FROM (
      SELECT e.run_id, e.seq AS n, e.at, e.type, e.node, e.attempt, e.outcome, e.data
      FROM ${events} e
      WHERE e.run_id = r.id AND e.type <> 'batch'
      UNION ALL
      SELECT e.run_id, (e.seq + t.place - 1)::integer, e.at, t.event ->> 0, t.event ->> 1, ${parseAttempt("t.event ->> 2")},
        t.event ->> 3, t.event ->> 4
      FROM ${events} e
      CROSS JOIN LATERAL ${json}(e.data) AS list
      CROSS JOIN LATERAL json_array_elements(${ofType("array", "list")}) WITH ORDINALITY AS t (event, place)
      WHERE e.run_id = r.id AND e.type = 'batch'
    ) u
    CROSS JOIN LATERAL ${json}(u.data) AS object
    CROSS JOIN LATERAL json_to_record(${ofType("object", "object")})
      AS f (ms text, "retryMs" text, "waitMs" text, by text, rewind text, error json)
    WHERE ${isRelevantEvent} AND ${rewindsIfReattempted("f.rewind = 'true'")}
  `;
