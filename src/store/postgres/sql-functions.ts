/**
 * SQL functions with which a program in any language starts and signals runs inside its own transaction:
 *
 * - `pawl_start(workflow, input, options)` does what `pawl.workflow(name).trigger(input, { ..., tx })` does.
 * - `pawl_signal(run, name, payload, options)` does what `run.signal(name, payload, { key, tx })` does: it writes the
 *   inbox, the counter and the hint only, because the state of the run may change before the caller commits.
 *
 * They have the rights of their caller (docs/sql-functions.md lists the grants). Every table and every function of Pawl is
 * named with its schema, and the functions set the search path, so the caller's search path does not matter.
 */
import { taskState } from "../sql/records.js";
import { maxStartTries, signalOptionNames, startOptionNames } from "../sql/sql-calls.js";
import { realNow } from "./clock.js";
import { channelOf } from "./connection/notifier.js";
import { createHelpers, dollarQuoted, type HelperName, helpersIn } from "./sql-function-helpers.js";
import { quoteName, type Tables } from "./tables.js";

const { parked, ready } = taskState;

export function createSqlFunctions(tables: Tables): readonly string[] {
  const helper = helpersIn(tables.schema);
  return [
    ...createHelpers(helper),
    createIsSame(helper),
    createWasSignalled(tables, helper),
    createStart(tables, helper),
    createSignal(tables, helper),
  ];
}

/** Backslashes in the bodies of the functions must not depend on the caller's settings either. */
const settings = "SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on";

const textArray = (names: readonly string[]) => `ARRAY[${names.map((name) => `'${name}'`).join(", ")}]`;

/** The server sends the notification when the caller commits. */
const notify = (tables: Tables, hint: string) => `PERFORM pg_notify('${channelOf(tables.schema)}', ${hint});`;

/**
 * Compares two encoded inputs by value. Text that jsonb refuses (\\u0000, halves of surrogate pairs) was written by the
 * client and cannot equal an input that was jsonb.
 */
const createIsSame = (helper: HelperName) =>
  `CREATE FUNCTION ${helper("is_same")}(stored text, encoded text) RETURNS boolean LANGUAGE plpgsql AS ${dollarQuoted(`
BEGIN
  RETURN stored::jsonb = encoded::jsonb;
EXCEPTION WHEN data_exception THEN
  RETURN false;
END `)}`;

const createStart = (tables: Tables, helper: HelperName) => {
  const columns = `id, priority, workflow, version, queue, hero_type, hero_id, hero_key, start_key, tags, input, status, created_at, started_by`;
  const values = `v_id, v_priority, workflow, v_version, v_queue, v_hero ->> 'type', v_hero ->> 'id', v_hero_key, v_start_key, v_tags, v_input, 'pending', v_at, v_audit`;
  return `CREATE FUNCTION ${quoteName(tables.schema)}.pawl_start(workflow text, input jsonb DEFAULT 'null', options jsonb DEFAULT '{}')
RETURNS uuid LANGUAGE plpgsql ${settings} AS ${dollarQuoted(`
DECLARE
  v_options jsonb := coalesce(options, '{}');
  v_at bigint;
  v_id uuid;
  v_version text;
  v_queue text;
  v_graph text;
  v_definition jsonb;
  v_policy jsonb;
  v_hero jsonb;
  v_hero_key text;
  v_priority integer;
  v_tags text;
  v_start_key text;
  v_audit text;
  v_due_at bigint;
  v_input text;
  v_existing_id uuid;
  v_existing_input text;
BEGIN
  PERFORM ${helper("name")}('workflow name', to_jsonb(workflow));
  PERFORM ${helper("check_options")}('pawl_start', v_options, ${textArray(startOptionNames)});
  SELECT w.version, w.queue, w.graph INTO v_version, v_queue, v_graph
    FROM ${tables.workflows} w WHERE w.name = pawl_start.workflow;
  IF NOT FOUND THEN
    PERFORM ${helper("raise")}('WORKFLOW_NOT_FOUND',
      format('Workflow %s is not registered; start a worker that has it, or call createWorkflow(%s) first.', to_json(workflow), to_json(workflow)));
  END IF;
  v_definition := ${quoteName(tables.schema)}.pawl_json(coalesce(v_graph, '{}'))::jsonb;
  IF jsonb_typeof(v_definition) IS DISTINCT FROM 'object' THEN
    PERFORM ${helper("raise")}('DAMAGED_DATA',
      format('The registration of workflow %s cannot be read: its graph is damaged (it cannot be parsed; a worker that has the workflow writes it again when it starts).', to_json(workflow)));
  END IF;

  v_policy := coalesce(v_definition -> 'hero', '{}');
  v_hero := ${helper("hero")}(workflow, v_policy, v_options -> 'hero');
  v_priority := ${helper("priority")}(coalesce(nullif(v_options -> 'priority', 'null'), v_definition -> 'priority', '0'));
  IF jsonb_typeof(v_options -> 'allowMultiple') NOT IN ('boolean', 'null') THEN
    PERFORM ${helper("raise")}('INVALID_INPUT', format('allowMultiple must be true or false, not %s.', v_options -> 'allowMultiple'));
  END IF;
  IF v_hero IS NOT NULL AND coalesce(nullif(v_options -> 'allowMultiple', 'null'), v_policy -> 'allowMultiple', 'false') = 'false' THEN
    v_hero_key := format('[%s,%s,%s]', to_json(workflow), v_hero -> 'type', v_hero -> 'id');
  END IF;
  v_tags := ${helper("tags")}(v_definition -> 'tags', v_options -> 'tags');
  IF v_options -> 'idempotencyKey' IS NOT NULL THEN
    v_start_key := ${helper("name")}('idempotency key', v_options -> 'idempotencyKey');
  END IF;
  v_audit := ${helper("audit")}(v_options);
  v_at := ${realNow};
  v_due_at := ${helper("due")}(v_options, v_at);
  v_input := ${helper("encode")}(input, format('the input of workflow "%s"', workflow));

  FOR v_try IN 1 .. ${maxStartTries} LOOP
    v_id := ${helper("new_id")}(v_at);
    INSERT INTO ${tables.runs} (${columns})
      VALUES (${values})
      ON CONFLICT DO NOTHING;
    IF FOUND THEN
      INSERT INTO ${tables.tasks} (run_id, workflow, version, priority, state, due_at, deliveries, pending_messages, fresh)
        VALUES (v_id, workflow, v_version, v_priority, CASE WHEN v_due_at <= v_at THEN ${ready} ELSE ${parked} END, v_due_at, 0, 0, true);
      ${notify(tables, `format('{"hints":[{"kind":"ready","workflows":[%s]}]}', to_json(workflow))`)}
      RETURN v_id;
    END IF;

    -- Another run holds one of the keys. If both keys are taken, the idempotency key decides.
    SELECT r.id, r.input INTO v_existing_id, v_existing_input
      FROM ${tables.runs} r WHERE r.workflow = pawl_start.workflow AND r.start_key = v_start_key;
    IF FOUND THEN
      IF v_existing_input = v_input OR ${helper("is_same")}(v_existing_input, v_input) THEN
        RETURN v_existing_id;
      END IF;
      PERFORM ${helper("raise")}('INVALID_INPUT',
        format('Workflow "%s" was already started with the idempotency key "%s" and another input, as run %s; use another key for another start.', workflow, v_start_key, v_existing_id),
        jsonb_build_object('runId', v_existing_id));
    END IF;
    SELECT r.id INTO v_existing_id FROM ${tables.runs} r WHERE r.hero_key = v_hero_key;
    IF FOUND THEN
      PERFORM ${helper("raise")}('ALREADY_ACTIVE',
        format('%s %s already has an active run of workflow %s: %s. Wait for it, cancel it, or start with allowMultiple.', v_hero ->> 'type', v_hero ->> 'id', to_json(workflow), v_existing_id),
        jsonb_build_object('runId', v_existing_id));
    END IF;
    -- That run has ended or was deleted meanwhile, so the key is free.
  END LOOP;
  PERFORM ${helper("raise")}('STORE_ERROR', 'A start was neither written nor refused; start it again.');
END `)}`;
};

/**
 * Whether the log of a run contains a signal with this key. What precedes `,"payload":` in the data of a signal are names,
 * in which quotes are escaped, so a comparison of texts is exact, whatever the payload contains.
 */
const createWasSignalled = (tables: Tables, helper: HelperName) =>
  `CREATE FUNCTION ${helper("was_signalled")}(run uuid, key text) RETURNS boolean LANGUAGE sql STABLE AS ${dollarQuoted(`
  SELECT EXISTS (
    SELECT FROM (
      SELECT e.data FROM ${tables.events} e WHERE e.run_id = run AND e.type = 'signal.received'
      UNION ALL
      SELECT t.event ->> 4
      FROM ${tables.events} e
      CROSS JOIN LATERAL ${quoteName(tables.schema)}.pawl_json(e.data) AS list
      CROSS JOIN LATERAL json_array_elements(CASE json_typeof(list) WHEN 'array' THEN list END) AS t (event)
      WHERE e.run_id = run AND e.type = 'batch' AND t.event ->> 0 = 'signal.received'
    ) s
    WHERE strpos(split_part(s.data, ',"payload":', 1) || ',', ',"key":' || to_json(key) || ',') > 0
  )
`)}`;

/**
 * A message would make a run that waits for its time start before it, so a run that has neither started nor is due is
 * refused. The task is locked before the time is read: the instants of a run's messages never go backwards.
 */
const createSignal = (tables: Tables, helper: HelperName) =>
  `CREATE FUNCTION ${quoteName(tables.schema)}.pawl_signal(run uuid, name text, payload jsonb DEFAULT 'null', options jsonb DEFAULT '{}')
RETURNS void LANGUAGE plpgsql ${settings} AS ${dollarQuoted(`
DECLARE
  v_options jsonb := coalesce(options, '{}');
  v_name text;
  v_key text;
  v_audit text;
  v_data text;
  v_at bigint;
  v_state smallint;
  v_due_at bigint;
  v_status text;
  v_finished_at bigint;
BEGIN
  PERFORM ${helper("check_options")}('pawl_signal', v_options, ${textArray(signalOptionNames)});
  v_name := ${helper("name")}('signal name', to_jsonb(name));
  IF v_options -> 'key' IS NOT NULL THEN
    v_key := ${helper("name")}('signal key', v_options -> 'key');
  END IF;
  v_audit := ${helper("audit")}(v_options);
  v_data := format('{"name":%s,"payload":%s,"key":%s%s}',
    to_json(v_name),
    to_json(${helper("encode")}(payload, format('the payload of signal "%s"', v_name))),
    coalesce(to_json(v_key)::text, 'null'),
    ',"audit":' || v_audit);
  IF run IS NULL THEN
    PERFORM ${helper("raise")}('INVALID_INPUT', 'The run is NULL; pass the id of a run, as pawl_start returns it.');
  END IF;

  SELECT t.state, t.due_at INTO v_state, v_due_at FROM ${tables.tasks} t WHERE t.run_id = run FOR UPDATE;
  v_at := ${realNow};
  IF v_state IS NULL THEN
    SELECT r.status, r.finished_at INTO v_status, v_finished_at FROM ${tables.runs} r WHERE r.id = run;
    IF NOT FOUND THEN
      PERFORM ${helper("raise")}('RUN_NOT_FOUND', format('Run %s does not exist; it may have been pruned.', run));
    ELSIF v_finished_at IS NULL THEN
      PERFORM ${helper("raise")}('STORE_ERROR', format('Run %s changed while a signal was sent in a transaction; try again.', run));
    ELSIF v_key IS NULL OR NOT ${helper("was_signalled")}(run, v_key) THEN
      PERFORM ${helper("raise")}('INVALID_STATE', format('Run %s is %s and cannot take the signal "%s".', run, v_status, v_name));
    END IF;
    RETURN;
  END IF;
  IF v_state = ${parked} AND (v_due_at IS NULL OR v_due_at > v_at) THEN
    PERFORM FROM ${tables.runs} r WHERE r.id = run AND r.started_at IS NULL;
    IF FOUND THEN
      PERFORM ${helper("raise")}('INVALID_STATE',
        format('Run %s has not started and is not due yet, so it takes no signal in a transaction; send it when the run is due, or with run.signal() of the client.', run));
    END IF;
  END IF;

  UPDATE ${tables.tasks} t SET pending_messages = t.pending_messages + 1,
      state = CASE t.state WHEN ${parked} THEN ${ready} ELSE t.state END,
      due_at = CASE t.state WHEN ${parked} THEN v_at ELSE t.due_at END
    WHERE t.run_id = run;
  INSERT INTO ${tables.inbox} (run_id, kind, data, at) VALUES (run, 'signal', v_data, v_at);
  ${notify(tables, `format('{"hints":[{"kind":"messages","runIds":["%s"]}]}', run)`)}
END `)}`;
