/**
 * The functions that `pawl_start` and `pawl_signal` call (sql-functions.ts): errors, checks of names and options, and the
 * encoding of values. Users do not call them, so their names begin with `pawl_internal_`.
 *
 * They name no table, and they find the built-in functions by the search path that their caller sets.
 */
import { DEFAULT_LIMIT_BYTES } from "../../core/encoding/encode.js";
import { ENCODED_UNDEFINED, MARKER, MAX_DEPTH, TAG, tooDeepMessage } from "../../core/encoding/tagged-json.js";
import { MAX_DURATION_MS } from "../../core/naming/duration.js";
import { MAX_TAGS, NAME_LIMIT_BYTES } from "../../core/naming/names.js";
import { maxInstantMs, maxPriority, maxReasonLength, sqlErrors } from "../sql/sql-calls.js";
import { quoteName } from "./tables.js";

/** @param name without the prefix */
export type HelperName = (name: string) => string;

export const helpersIn =
  (schema: string): HelperName =>
  (name) =>
    `${quoteName(schema)}.pawl_internal_${name}`;

/** The tag is longer than `$$`, because the body contains the name of the schema, which may contain `$$`. */
export function dollarQuoted(body: string): string {
  let tag = "$function$";
  while (body.includes(tag)) tag = tag.replace(/.$/, "_$");
  return `${tag}\n${body.replace(/^\n/, "")}${tag}`;
}

export function createHelpers(helper: HelperName): readonly string[] {
  return [
    createRaise(helper),
    createName(helper),
    createCheckOptions(helper),
    createCompact(helper),
    createEscape(helper),
    createEncode(helper),
    createHero(helper),
    createPriority(helper),
    createTags(helper),
    createAudit(helper),
    createDue(helper),
    createNewId(helper),
  ];
}

const sqlStates = Object.entries(sqlErrors)
  .map(([code, { sqlState }]) => `WHEN '${code}' THEN '${sqlState}'`)
  .join(" ");

/** DETAIL is JSON, so that programs need not take the message apart to get the code and the id of a run. */
const createRaise = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("raise")}(code text, message text, fields jsonb DEFAULT '{}') RETURNS void LANGUAGE plpgsql AS ${dollarQuoted(`
BEGIN
  RAISE EXCEPTION USING
    ERRCODE = CASE code ${sqlStates} END,
    MESSAGE = message,
    DETAIL = (jsonb_build_object('code', code) || fields)::text;
END `)}`;

/** The characters that JavaScript's trim() removes, apart from control characters, which are refused before. */
const spaces = String.raw`[ \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]`;

/** Returns a name if it obeys the rules of core/naming/names.ts. jsonb has no halves of surrogate pairs. */
const createName = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("name")}(noun text, value jsonb) RETURNS text LANGUAGE plpgsql AS ${dollarQuoted(String.raw`
DECLARE
  v_name text := value #>> '{}';
  v_shown text := coalesce(jsonb_typeof(value), 'NULL');
  v_problem text;
BEGIN
  IF v_shown <> 'string' THEN
    v_problem := 'must be a string';
  ELSE
    v_shown := to_json(CASE WHEN length(v_name) > 60 THEN left(v_name, 60) || '...' ELSE v_name END)::text;
    v_problem := CASE
      WHEN v_name = '' THEN 'must not be empty'
      WHEN octet_length(v_name) > ${NAME_LIMIT_BYTES} THEN format('is %s bytes; the limit is ${NAME_LIMIT_BYTES}', octet_length(v_name))
      WHEN v_name ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'contains a control character'
      WHEN v_name ~ '^${spaces}|${spaces}$' THEN 'must not begin or end with a space'
    END;
  END IF;
  IF v_problem IS NOT NULL THEN
    PERFORM ${helper("raise")}('INVALID_INPUT', format('The %s %s %s; choose another.', noun, v_shown, v_problem));
  END IF;
  RETURN v_name;
END `)}`;

const createCheckOptions = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("check_options")}(subject text, options jsonb, known text[]) RETURNS void LANGUAGE plpgsql AS ${dollarQuoted(`
DECLARE
  v_unknown text;
BEGIN
  IF jsonb_typeof(options) <> 'object' THEN
    PERFORM ${helper("raise")}('INVALID_INPUT',
      format('%s takes its options as an object, not %s.', subject,
        CASE jsonb_typeof(options) WHEN 'null' THEN 'null' WHEN 'array' THEN 'a list' ELSE 'a ' || jsonb_typeof(options) END));
  END IF;
  SELECT k.option INTO v_unknown FROM jsonb_object_keys(options) AS k (option) WHERE k.option <> ALL (known) LIMIT 1;
  IF FOUND THEN
    PERFORM ${helper("raise")}('INVALID_INPUT',
      format('%s has no option "%s"; its options are %s.', subject, v_unknown, array_to_string(known, ', ')));
  END IF;
END `)}`;

/** Removes the spaces that jsonb writes after commas and colons, so that the text and its size are as JSON.stringify's. */
const createCompact = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("compact")}(value jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS ${dollarQuoted(String.raw`
  SELECT regexp_replace(value::text, '("(?:[^"\\]|\\.)*")|([,:]) ', '\1\2', 'g')
`)}`;

/** Writes objects with the key `$pawl` as core/encoding/encode.ts does, so that they are not taken for tagged values. */
const createEscape = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("escape")}(value jsonb) RETURNS text LANGUAGE plpgsql AS ${dollarQuoted(`
DECLARE
  v_text text;
BEGIN
  IF strpos(value::text, '${MARKER}') = 0 THEN
    RETURN ${helper("compact")}(value);
  END IF;
  IF jsonb_typeof(value) = 'array' THEN
    RETURN (SELECT '[' || string_agg(${helper("escape")}(e.item), ',' ORDER BY e.place) || ']'
      FROM jsonb_array_elements(value) WITH ORDINALITY AS e (item, place));
  END IF;
  SELECT '{' || string_agg(to_json(e.key)::text || ':' || ${helper("escape")}(e.value), ',') || '}' INTO v_text
    FROM jsonb_each(value) AS e;
  RETURN CASE WHEN value -> '${TAG}' IS NULL THEN v_text ELSE '{${MARKER}"Object","v":' || v_text || '}' END;
END `)}`;

/** A text of at most two characters per level cannot be nested too deeply. */
const createEncode = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("encode")}(value jsonb, label text) RETURNS text LANGUAGE plpgsql AS ${dollarQuoted(`
DECLARE
  v_text text;
BEGIN
  IF value IS NULL THEN
    RETURN '${ENCODED_UNDEFINED}';
  END IF;
  IF length(value::text) > ${MAX_DEPTH * 2}
    AND jsonb_path_exists(value, 'strict $.**{${MAX_DEPTH}} ? (@.type() == "object" || @.type() == "array")') THEN
    PERFORM ${helper("raise")}('SERIALIZATION_ERROR',
      format('Cannot store %s: it is ${tooDeepMessage(MAX_DEPTH)}; pass plain data instead.', label));
  END IF;
  v_text := ${helper("escape")}(value);
  IF octet_length(v_text) > ${DEFAULT_LIMIT_BYTES} THEN
    PERFORM ${helper("raise")}('PAYLOAD_TOO_LARGE',
      format('Cannot store %s: it is %s bytes and the limit is ${DEFAULT_LIMIT_BYTES}. Keep the data elsewhere (a table, a file, a bucket) and pass a reference to it.',
        label, octet_length(v_text)));
  END IF;
  RETURN v_text;
END `)}`;

/** Checks the hero of a new run as define/hero.ts does. Returns NULL if the run has none. */
const createHero = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("hero")}(workflow text, policy jsonb, hero jsonb) RETURNS jsonb LANGUAGE plpgsql AS ${dollarQuoted(`
DECLARE
  v_type text := policy ->> 'type';
BEGIN
  IF hero IS NULL OR jsonb_typeof(hero) = 'null' THEN
    IF policy -> 'required' = 'true' THEN
      PERFORM ${helper("raise")}('INVALID_INPUT',
        format('A run of workflow "%s" is about a hero; start it with { hero: { type: "%s", id: "..." } }.', workflow, coalesce(v_type, '...')));
    END IF;
    RETURN NULL;
  END IF;
  IF jsonb_typeof(hero) <> 'object' OR hero -> 'type' IS NULL OR hero -> 'id' IS NULL THEN
    PERFORM ${helper("raise")}('INVALID_INPUT',
      format('The hero of a run of workflow "%s" is given by type and id, { type: "%s", id: "..." }, not as %s.', workflow, coalesce(v_type, '...'),
        CASE jsonb_typeof(hero)
          WHEN 'object' THEN 'an object with ' || coalesce((SELECT string_agg(k.key, ', ') FROM jsonb_object_keys(hero) AS k (key)), 'nothing')
          ELSE 'a ' || jsonb_typeof(hero) END));
  END IF;
  IF v_type IS NOT NULL AND hero -> 'type' <> to_jsonb(v_type) THEN
    PERFORM ${helper("raise")}('INVALID_INPUT',
      format('A run of workflow "%s" is about a hero of type "%s", not "%s".', workflow, v_type, hero ->> 'type'));
  END IF;
  IF jsonb_typeof(hero -> 'id') = 'number' THEN
    PERFORM ${helper("raise")}('INVALID_INPUT',
      format('The hero''s id is the number %s, but a hero''s id must be a string; write { "type": "%s", "id": "%s" }.', hero ->> 'id', hero ->> 'type', hero ->> 'id'));
  END IF;
  RETURN jsonb_build_object(
    'type', ${helper("name")}('hero type', hero -> 'type'), 'id', ${helper("name")}('hero id', hero -> 'id'));
END `)}`;

const createPriority = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("priority")}(value jsonb) RETURNS integer LANGUAGE plpgsql AS ${dollarQuoted(`
BEGIN
  IF jsonb_typeof(value) = 'number' AND value::numeric = trunc(value::numeric) AND abs(value::numeric) <= ${maxPriority} THEN
    RETURN value::numeric::integer;
  END IF;
  PERFORM ${helper("raise")}('INVALID_INPUT',
    format('A priority must be a whole number between -1,000,000 and 1,000,000, not %s.', value #>> '{}'));
END `)}`;

/** Returns the encoded tags, or NULL if there are none, as store/sql/records.ts encodes them. */
const createTags = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("tags")}(defaults jsonb, added jsonb) RETURNS text LANGUAGE plpgsql AS ${dollarQuoted(`
DECLARE
  v_tags jsonb := coalesce(defaults, '[]');
BEGIN
  IF added IS NOT NULL THEN
    IF jsonb_typeof(added) <> 'array' THEN
      PERFORM ${helper("raise")}('INVALID_INPUT', format('Tags are a list of texts, not a %s.', jsonb_typeof(added)));
    END IF;
    PERFORM ${helper("name")}('tag', t.tag) FROM jsonb_array_elements(added) AS t (tag);
    v_tags := v_tags || added;
    IF jsonb_array_length(v_tags) > ${MAX_TAGS} THEN
      PERFORM ${helper("raise")}('INVALID_INPUT',
        format('A run has at most ${MAX_TAGS} tags, not %s; put the rest into its input.', jsonb_array_length(v_tags)));
    END IF;
  END IF;
  RETURN CASE WHEN jsonb_array_length(v_tags) > 0 THEN ${helper("compact")}(v_tags) END;
END `)}`;

/** Returns who gives the command, and why, as JSON text; NULL if the caller says neither. */
const createAudit = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("audit")}(options jsonb) RETURNS text LANGUAGE plpgsql AS ${dollarQuoted(`
DECLARE
  v_by text;
  v_reason text := options ->> 'reason';
BEGIN
  IF jsonb_typeof(options -> 'reason') NOT IN ('string', 'null') THEN
    PERFORM ${helper("raise")}('INVALID_INPUT', format('A reason is a text, not a %s.', jsonb_typeof(options -> 'reason')));
  END IF;
  IF length(v_reason) > ${maxReasonLength} THEN
    v_reason := left(v_reason, ${maxReasonLength}) || '...';
  END IF;
  IF options -> 'by' IS NOT NULL THEN
    v_by := ${helper("name")}('name of a user', options -> 'by');
  END IF;
  RETURN '{' || nullif(concat_ws(',', '"by":' || to_json(v_by), '"reason":' || to_json(v_reason)), '') || '}';
END `)}`;

const isoPattern = String.raw`^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)$`;

/** Returns when a new run is due. Text without a time zone is refused: its instant would depend on the session. */
const createDue = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("due")}(options jsonb, at bigint) RETURNS bigint LANGUAGE plpgsql AS ${dollarQuoted(`
DECLARE
  v_delay jsonb := options -> 'delay';
  v_start_at jsonb := options -> 'startAt';
  v_problem text;
  v_ms numeric;
BEGIN
  IF v_delay IS NOT NULL AND v_start_at IS NOT NULL THEN
    PERFORM ${helper("raise")}('INVALID_INPUT', 'A start takes either \`delay\` or \`startAt\`, not both.');
  END IF;
  IF v_delay IS NOT NULL THEN
    v_problem := CASE
      WHEN jsonb_typeof(v_delay) <> 'number' THEN 'is not a number'
      WHEN v_delay::numeric < 0 THEN 'is negative'
      WHEN v_delay::numeric > ${MAX_DURATION_MS} THEN 'is longer than 1000 years'
    END;
    IF v_problem IS NOT NULL THEN
      PERFORM ${helper("raise")}('INVALID_INPUT',
        format('The delay %s %s; write a number of milliseconds, such as 60000 for a minute.', v_delay, v_problem));
    END IF;
    RETURN at + round(v_delay::numeric)::bigint;
  END IF;
  IF v_start_at IS NULL THEN
    RETURN at;
  END IF;
  BEGIN
    v_ms := CASE
      WHEN jsonb_typeof(v_start_at) = 'number' THEN v_start_at::numeric
      WHEN v_start_at #>> '{}' ~ '${isoPattern}' THEN extract(epoch FROM (v_start_at #>> '{}')::timestamptz) * 1000
    END;
  EXCEPTION WHEN data_exception THEN
    v_ms := NULL;
  END;
  IF v_ms IS NULL OR abs(v_ms) > ${maxInstantMs} THEN
    PERFORM ${helper("raise")}('INVALID_INPUT',
      format('startAt is not a valid date but %s; pass ISO 8601 text with a time zone, such as "2030-01-31T09:00:00Z", or a number of milliseconds since 1970.', v_start_at));
  END IF;
  RETURN floor(v_ms)::bigint;
END `)}`;

/** A UUID of version 7: the time in the first 48 bits, and the random bits of a UUID of version 4. */
const createNewId = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("new_id")}(at bigint) RETURNS uuid LANGUAGE sql VOLATILE AS ${dollarQuoted(`
  SELECT encode(set_bit(set_bit(
    overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send(at) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
`)}`;
