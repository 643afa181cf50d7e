/**
 * Stored procedures with which a program in any language starts and signals runs inside its own transaction. (Functions that
 * write are refused on servers with a binary log.)
 *
 * - `CALL pawl_start(workflow, input, options, @run_id)` does what `pawl.workflow(name).trigger(input, { …, tx })` does.
 * - `CALL pawl_signal(run, name, payload, options)` does what `run.signal(name, payload, { key, tx })` does: it writes the
 *   inbox and the counter only, because the state of the run may change before the caller commits.
 *
 * They have the rights of their caller (docs/sql-functions.md lists the grants), and they never commit for the caller.
 * Without an open transaction, a call is a transaction of its own. START TRANSACTION and COMMIT are in procedures that are
 * called only then: a procedure that contains them cannot be called by a trigger, even if it does not reach them.
 *
 * Workers poll here, so there is no hint to send.
 */
import { taskState } from "../sql/records.js";
import { maxStartTries, signalOptionNames, startOptionNames } from "../sql/sql-calls.js";
import { serverNow } from "./clock.js";
import { jsonField, procedure, quoted, raise, text } from "./procedure.js";
import { checkProcedures } from "./procedure-checks.js";
import { jsonProcedures } from "./procedure-json.js";
import { forcePrimaryKey } from "./sql.js";

const { parked, ready } = taskState;

/**
 * Begins a transaction unless one is open. Outside of a transaction, a savepoint ends with its own statement, so the second
 * statement fails. Inside of one, the savepoint is where a failed call goes back to, so that no half of it is left.
 */
const createBegin = procedure(
  "pawl_internal_begin",
  ["OUT p_is_own_transaction BOOLEAN"],
  `
BEGIN
  DECLARE EXIT HANDLER FOR 1305
  BEGIN
    SET p_is_own_transaction = TRUE;
    CALL pawl_internal_start_transaction();
  END;
  SET p_is_own_transaction = FALSE;
  SAVEPOINT pawl_call;
  ROLLBACK TO SAVEPOINT pawl_call;
END`,
);

const createEnd = procedure(
  "pawl_internal_end",
  ["IN p_is_own_transaction BOOLEAN"],
  `
BEGIN
  IF p_is_own_transaction THEN
    CALL pawl_internal_commit();
  ELSE
    RELEASE SAVEPOINT pawl_call;
  END IF;
END`,
);

/** After a deadlock the server has rolled back the whole transaction, and the savepoint is gone. */
const createUndo = procedure(
  "pawl_internal_undo",
  ["IN p_is_own_transaction BOOLEAN"],
  `
BEGIN
  DECLARE CONTINUE HANDLER FOR 1305 BEGIN END;
  IF p_is_own_transaction THEN
    CALL pawl_internal_rollback();
  ELSE
    ROLLBACK TO SAVEPOINT pawl_call;
  END IF;
END`,
);

const inTransaction = (call: string) => `
BEGIN
  DECLARE v_is_own_transaction BOOLEAN;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL pawl_internal_undo(v_is_own_transaction);
    RESIGNAL;
  END;
  CALL pawl_internal_begin(v_is_own_transaction);
  CALL ${call};
  CALL pawl_internal_end(v_is_own_transaction);
END`;

/** A UUID of version 7. The server's UUID() is unique but not random, so its hash is taken. */
const createNewId = procedure(
  "pawl_internal_new_id",
  ["IN p_at BIGINT", "OUT p_id VARCHAR(36) CHARACTER SET utf8mb4"],
  `
BEGIN
  DECLARE v_random VARCHAR(64) CHARACTER SET utf8mb4;
  DECLARE v_time VARCHAR(12) CHARACTER SET utf8mb4;
  SET v_random = LOWER(SHA2(CONCAT(UUID(), CONNECTION_ID(), RAND()), 256));
  SET v_time = LOWER(LPAD(HEX(p_at), 12, '0'));
  SET p_id = CONCAT(LEFT(v_time, 8), '-', RIGHT(v_time, 4), '-7', LEFT(v_random, 3), '-',
    SUBSTRING('89ab', 1 + CONV(SUBSTRING(v_random, 4, 1), 16, 10) % 4, 1), SUBSTRING(v_random, 5, 3), '-', SUBSTRING(v_random, 8, 12));
END`,
);

const startParameters = [`IN p_workflow ${text}`, `IN p_input ${text}`, `IN p_options ${text}`];
const runIdParameter = "OUT p_run_id VARCHAR(36) CHARACTER SET utf8mb4";
const runsTable =
  "pawl_runs (id, workflow, version, queue, priority, status, input, hero_type, hero_id, hero_key, start_key, tags, created_at, started_by)";
const runValues =
  "p_run_id, p_workflow, v_version, v_queue, v_priority, 'pending', p_input, v_hero_type, v_hero_id, v_hero_key, v_start_key, v_tags, v_at, v_audit";

/** The keys of other runs are read with a lock, because the caller's snapshot may be older than those runs. */
const createStartRun = procedure(
  "pawl_internal_start",
  [...startParameters, runIdParameter],
  `
start_run: BEGIN
  DECLARE v_at BIGINT;
  DECLARE v_version ${text};
  DECLARE v_queue ${text};
  DECLARE v_graph ${text};
  DECLARE v_hero_type ${text};
  DECLARE v_hero_id ${text};
  DECLARE v_hero_key ${text};
  DECLARE v_allow_multiple ${text};
  DECLARE v_priority INT;
  DECLARE v_tags ${text};
  DECLARE v_start_key ${text};
  DECLARE v_audit ${text};
  DECLARE v_due_at BIGINT;
  DECLARE v_try INT DEFAULT 0;
  DECLARE v_is_taken BOOLEAN;
  DECLARE v_existing_id VARCHAR(36) CHARACTER SET utf8mb4;
  DECLARE v_existing_input ${text};
  DECLARE v_is_same BOOLEAN;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

  SET p_options = COALESCE(p_options, '{}');
  CALL pawl_internal_name('workflow name', p_workflow);
  CALL pawl_internal_check_options('pawl_start', p_options, '${startOptionNames.join(",")}');
  SELECT w.version, w.queue, COALESCE(w.graph, '{}') INTO v_version, v_queue, v_graph
    FROM pawl_workflows w WHERE w.name = CAST(p_workflow AS BINARY);
  IF v_version IS NULL THEN
    ${raise(
      "WORKFLOW_NOT_FOUND",
      `CONCAT('Workflow ', ${quoted("p_workflow")}, ' is not registered; start a worker that has it, or call createWorkflow(', ${quoted("p_workflow")}, ') first.')`,
    )}
  END IF;
  IF NOT JSON_VALID(v_graph) OR JSON_TYPE(v_graph) <> 'OBJECT' THEN
    ${raise(
      "DAMAGED_DATA",
      `CONCAT('The registration of workflow ', ${quoted("p_workflow")}, ' cannot be read: its graph is damaged (it cannot be parsed; a worker that has the workflow writes it again when it starts).')`,
    )}
  END IF;

  CALL pawl_internal_hero(p_workflow, ${jsonField("v_graph", "hero")}, ${jsonField("p_options", "hero")}, v_hero_type, v_hero_id);
  CALL pawl_internal_priority(
    CASE WHEN COALESCE(JSON_TYPE(${jsonField("p_options", "priority")}), 'NULL') = 'NULL'
      THEN COALESCE(${jsonField("v_graph", "priority")}, '0') ELSE ${jsonField("p_options", "priority")} END,
    v_priority);
  IF JSON_TYPE(${jsonField("p_options", "allowMultiple")}) NOT IN ('BOOLEAN', 'NULL') THEN
    ${raise("INVALID_INPUT", `CONCAT('allowMultiple must be true or false, not ', ${jsonField("p_options", "allowMultiple")}, '.')`)}
  END IF;
  SET v_allow_multiple = CASE WHEN JSON_TYPE(${jsonField("p_options", "allowMultiple")}) = 'BOOLEAN'
    THEN ${jsonField("p_options", "allowMultiple")} ELSE ${jsonField("v_graph", "hero.allowMultiple")} END;
  IF v_hero_type IS NOT NULL AND COALESCE(v_allow_multiple, 'false') <> 'true' THEN
    SET v_hero_key = CONCAT('[', ${quoted("p_workflow")}, ',', ${quoted("v_hero_type")}, ',', ${quoted("v_hero_id")}, ']');
  END IF;
  CALL pawl_internal_tags(${jsonField("v_graph", "tags")}, ${jsonField("p_options", "tags")}, v_tags);
  IF ${jsonField("p_options", "idempotencyKey")} IS NOT NULL THEN
    CALL pawl_internal_name_option('idempotency key', ${jsonField("p_options", "idempotencyKey")}, v_start_key);
  END IF;
  CALL pawl_internal_audit(p_options, v_audit);
  SET v_at = ${serverNow};
  CALL pawl_internal_due(p_options, v_at, v_due_at);
  CALL pawl_internal_encode(p_input, CONCAT('the input of workflow "', p_workflow, '"'));

  WHILE v_try < ${maxStartTries} DO
    SET v_try = v_try + 1;
    SET v_is_taken = FALSE;
    CALL pawl_internal_new_id(v_at, p_run_id);
    BEGIN
      DECLARE CONTINUE HANDLER FOR 1062 SET v_is_taken = TRUE;
      INSERT INTO ${runsTable}
        VALUES (${runValues});
    END;
    IF NOT v_is_taken THEN
      INSERT INTO pawl_tasks (run_id, workflow, version, priority, state, rank_no, due_at, deliveries, pending_messages, fresh)
        VALUES (p_run_id, p_workflow, v_version, v_priority, CASE WHEN v_due_at <= v_at THEN ${ready} ELSE ${parked} END,
          CASE WHEN v_due_at <= v_at THEN -v_priority ELSE 0 END, v_due_at, 0, 0, 1);
      LEAVE start_run;
    END IF;

    -- Another run holds one of the keys. If both keys are taken, the idempotency key decides.
    SET v_existing_id = NULL;
    SELECT r.id, r.input INTO v_existing_id, v_existing_input FROM pawl_runs r FORCE INDEX (start_key)
      WHERE r.workflow = CAST(p_workflow AS BINARY) AND r.start_key = CAST(v_start_key AS BINARY) LOCK IN SHARE MODE;
    IF v_existing_id IS NOT NULL THEN
      CALL pawl_internal_is_same(v_existing_input, p_input, v_is_same);
      IF NOT v_is_same THEN
        ${raise(
          "INVALID_INPUT",
          `CONCAT('Workflow "', p_workflow, '" was already started with the idempotency key "', v_start_key, '" and another input, as run ', v_existing_id, '; use another key for another start.')`,
        )}
      END IF;
      SET p_run_id = v_existing_id;
      LEAVE start_run;
    END IF;
    SELECT r.id INTO v_existing_id FROM pawl_runs r FORCE INDEX (hero_key)
      WHERE r.hero_key = CAST(v_hero_key AS BINARY) LOCK IN SHARE MODE;
    IF v_existing_id IS NOT NULL THEN
      ${raise(
        "ALREADY_ACTIVE",
        `CONCAT(v_hero_type, ' ', v_hero_id, ' already has an active run of workflow ', ${quoted("p_workflow")}, ': ', v_existing_id, '. Wait for it, cancel it, or start with allowMultiple.')`,
      )}
    END IF;
    -- That run has ended or was deleted meanwhile, so the key is free.
  END WHILE;
  ${raise("STORE_ERROR", "'A start was neither written nor refused; start it again.'")}
END`,
);

/** Whether the log of a run contains a signal with this key; sql-functions.ts of PostgreSQL explains the comparison. */
const createWasSignalled = procedure(
  "pawl_internal_was_signalled",
  ["IN p_run LONGBLOB", `IN p_key ${text}`, "OUT p_was_signalled BOOLEAN"],
  `
BEGIN
  SELECT COUNT(*) > 0 INTO p_was_signalled FROM (
    SELECT CAST(e.data AS BINARY) AS data FROM pawl_events e
    WHERE e.run_id = p_run AND e.type = 'signal.received'
    UNION ALL
    SELECT CAST(t.data AS BINARY) FROM pawl_events e
    JOIN JSON_TABLE(CASE WHEN JSON_VALID(e.data) THEN e.data ELSE '[]' END, '$[*]' COLUMNS (
      type VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[0]',
      data LONGTEXT CHARACTER SET utf8mb4 PATH '$[4]'
    )) t
    WHERE e.run_id = p_run AND e.type = 'batch' AND t.type = 'signal.received'
  ) s
  WHERE LOCATE(CAST(CONCAT(',"key":', ${quoted("p_key")}, ',') AS BINARY), CONCAT(SUBSTRING_INDEX(s.data, ',"payload":', 1), ',')) > 0;
END`,
);

const signalParameters = [`IN p_run ${text}`, `IN p_name ${text}`, `IN p_payload ${text}`, `IN p_options ${text}`];

/**
 * A message would make a run that waits for its time start before it, so a run that has neither started nor is due is
 * refused. The task is locked before the time is read: the instants of a run's messages never go backwards.
 *
 * `state` is assigned last: the server assigns from left to right, and the other expressions need its old value.
 */
const createSignalRun = procedure(
  "pawl_internal_signal",
  signalParameters,
  `
signal_run: BEGIN
  DECLARE v_key ${text};
  DECLARE v_audit ${text};
  DECLARE v_payload ${text};
  DECLARE v_data ${text};
  DECLARE v_at BIGINT;
  DECLARE v_run LONGBLOB;
  DECLARE v_state INT;
  DECLARE v_due_at BIGINT;
  DECLARE v_status ${text};
  DECLARE v_started_at BIGINT;
  DECLARE v_finished_at BIGINT;
  DECLARE v_was_signalled BOOLEAN DEFAULT FALSE;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

  SET p_options = COALESCE(p_options, '{}');
  CALL pawl_internal_check_options('pawl_signal', p_options, '${signalOptionNames.join(",")}');
  CALL pawl_internal_name('signal name', p_name);
  IF ${jsonField("p_options", "key")} IS NOT NULL THEN
    CALL pawl_internal_name_option('signal key', ${jsonField("p_options", "key")}, v_key);
  END IF;
  CALL pawl_internal_audit(p_options, v_audit);
  SET v_payload = p_payload;
  CALL pawl_internal_encode(v_payload, CONCAT('the payload of signal "', p_name, '"'));
  -- The encoded payload has no raw control characters but spaces between its values, which need no escape.
  SET v_payload = REPLACE(v_payload, CHAR(9 USING utf8mb4), ' ');
  SET v_payload = REPLACE(REPLACE(v_payload, CHAR(10 USING utf8mb4), ' '), CHAR(13 USING utf8mb4), ' ');
  SET v_data = CONCAT('{"name":', ${quoted("p_name")}, ',"payload":', ${quoted("v_payload")}, ',"key":', COALESCE(${quoted("v_key")}, 'null'),
    COALESCE(CONCAT(',"audit":', v_audit), ''), '}');
  IF p_run IS NULL THEN
    ${raise("INVALID_INPUT", "'The run is NULL; pass the id of a run, as pawl_start returns it.'")}
  END IF;

  SET v_run = CAST(LOWER(p_run) AS BINARY);
  SELECT t.state, t.due_at INTO v_state, v_due_at FROM pawl_tasks t ${forcePrimaryKey} WHERE t.run_id = v_run FOR UPDATE;
  SET v_at = ${serverNow};
  IF v_state IS NULL OR v_state = ${parked} THEN
    SELECT r.status, r.started_at, r.finished_at INTO v_status, v_started_at, v_finished_at
      FROM pawl_runs r ${forcePrimaryKey} WHERE r.id = v_run LOCK IN SHARE MODE;
  END IF;
  IF v_state IS NULL AND v_status IS NULL THEN
    ${raise("RUN_NOT_FOUND", "CONCAT('Run ', p_run, ' does not exist; it may have been pruned.')")}
  ELSEIF v_state IS NULL AND v_finished_at IS NULL THEN
    ${raise("STORE_ERROR", "CONCAT('Run ', p_run, ' changed while a signal was sent in a transaction; try again.')")}
  ELSEIF v_state IS NULL THEN
    IF v_key IS NOT NULL THEN
      CALL pawl_internal_was_signalled(v_run, v_key, v_was_signalled);
    END IF;
    IF NOT v_was_signalled THEN
      ${raise("INVALID_STATE", `CONCAT('Run ', p_run, ' is ', v_status, ' and cannot take the signal "', p_name, '".')`)}
    END IF;
    LEAVE signal_run;
  ELSEIF v_state = ${parked} AND v_started_at IS NULL AND (v_due_at IS NULL OR v_due_at > v_at) THEN
    ${raise(
      "INVALID_STATE",
      "CONCAT('Run ', p_run, ' has not started and is not due yet, so it takes no signal in a transaction; send it when the run is due, or with run.signal() of the client.')",
    )}
  END IF;

  UPDATE pawl_tasks t ${forcePrimaryKey} SET
      t.pending_messages = t.pending_messages + 1,
      t.due_at = CASE t.state WHEN ${parked} THEN v_at ELSE t.due_at END,
      t.rank_no = CASE t.state WHEN ${parked} THEN -t.priority ELSE t.rank_no END,
      t.state = CASE t.state WHEN ${parked} THEN ${ready} ELSE t.state END
    WHERE t.run_id = v_run;
  INSERT INTO pawl_inbox (run_id, kind, data, at) VALUES (v_run, 'signal', v_data, v_at);
END`,
);

/** The public procedures come last, after what they call. */
export const sqlProcedures: readonly string[] = [
  ...checkProcedures,
  ...jsonProcedures,
  ...procedure("pawl_internal_start_transaction", [], "START TRANSACTION"),
  ...procedure("pawl_internal_commit", [], "COMMIT"),
  ...procedure("pawl_internal_rollback", [], "ROLLBACK"),
  ...createBegin,
  ...createEnd,
  ...createUndo,
  ...createNewId,
  ...createStartRun,
  ...createWasSignalled,
  ...createSignalRun,
  ...procedure(
    "pawl_start",
    [...startParameters, runIdParameter],
    inTransaction("pawl_internal_start(p_workflow, p_input, p_options, p_run_id)"),
  ),
  ...procedure(
    "pawl_signal",
    signalParameters,
    inTransaction("pawl_internal_signal(p_run, p_name, p_payload, p_options)"),
  ),
];
