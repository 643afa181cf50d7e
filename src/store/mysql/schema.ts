/**
 * The tables, which are the same on MySQL 8.0+ and MariaDB 10.6+.
 *
 * pawl_runs        One row per run: what was fixed when the run was created, and what is computed from its log when it
 *                  is parked or ends. No step writes to it; a run that never waits writes it twice.
 * pawl_tasks       One row per run that has not ended: when it is due and which worker owns it. The rows are small,
 *                  because claims read only this table. `workflow` and `priority` are what claims search by: at first
 *                  those of the run, later those of its last park. The run's row keeps the first values.
 * pawl_events      The logs. One row per commit and run: `seq` is the number of its first event, `span` how many events
 *                  it contains (shared/event-rows.ts).
 * pawl_inbox       Messages that the run's owner has not copied to the log yet.
 * pawl_cursors     The positions of resumable steps: one overwritten row per (run, node).
 * pawl_workers     The workers, live and dead. `epoch` grows with every registration; writes check (id, epoch, live).
 * pawl_workflows   What clients need to know of a workflow to start it by name.
 * pawl_queues      The paused queues, with the time and the reason. A queue that is not paused has no row.
 * pawl_figures     How many runs of each workflow began and ended in each minute. Processes add their counts now and then.
 * pawl_limits      The limits as they were last registered.
 * pawl_lanes       One row per lane, the part of a limit that belongs to one key. Transactions that take slots lock it.
 * pawl_classes     One row per class, a set of ready tasks that need slots in the same lanes; its id is their route.
 *                  `turn` orders the classes, `blocked_on` names the lane that had no free slot ('' when there is none).
 * pawl_gatherings  Leads starts of one key to the run that gathers them, until it begins; see contract/gatherings.ts.
 * pawl_gathered    The starts of a run whose input is a list, with their inputs until it begins.
 * pawl_start_deadlines
 *                  One row per run that must begin by an instant. It stays until the instant has come.
 * pawl_slots       One row per held slot. The rows of a lane are what it has in use. `waits` is 1 for a step that waits for one, and NULL
 *                  for a step whose run was parked and has let an offer lapse: it is out of the line until the run is executed.
 * pawl_schedules   One row per schedule. `next_for` is the instant of its next occurrence, `next_at` when it must be looked at,
 *                  because that occurrence is due (with jitter) or a run of it has ended.
 * pawl_occurrences The ledger: one row per occurrence of a schedule, or for consecutive skipped ones. The id is that of the
 *                  occurrence's run. `pending` is set while the schedule still has to look at the row.
 * pawl_schedule_apps  Per application, the set of schedules that is in force.
 * pawl_migrations  The migrations that have been applied.
 *
 * pawl_step_executions is a view for humans, computed from the logs (step-executions.ts). pawl_start and pawl_signal are
 * procedures for programs in other languages (sql-procedures.ts).
 *
 * Names, keys and ids are VARBINARY, containing UTF-8: `utf8mb4_bin` ignores trailing spaces, and each of the
 * collations that do not (utf8mb4_nopad_bin, utf8mb4_0900_bin) exists in only one of the two databases. Payloads are
 * LONGTEXT, so that humans can read them and the JSON functions accept them. All instants are epoch milliseconds.
 *
 * There are no foreign keys: each insert of a child row would lock the row of its parent.
 */

import { fingerprintSql, unsuccessfulSql } from "../sql/generated-columns.js";
import type { Migration } from "../sql/migrations.js";
import { sqlProcedures } from "./sql-procedures.js";
import { stepExecutionsView } from "./step-executions.js";

const tableOptions = "ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin";

/** Runs before the first migration, which is recorded in this table. */
export const createMigrationsTable = `CREATE TABLE IF NOT EXISTS pawl_migrations (
  version INT NOT NULL PRIMARY KEY,
  name VARBINARY(255) NOT NULL,
  at BIGINT NOT NULL
) ${tableOptions}`;

/** DDL commits by itself here, so each statement must be repeatable. Indexes are created with their table. */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: "tables",
    statements: [
      // The unique indexes accept any number of NULLs, so hero_key and start_key need no partial index.
      // InnoDB appends the primary key to every index, so the listing indexes have the order (created_at, id).
      // Lists by status, counts, and errors by fingerprint read the index "unsuccessful" alone. InnoDB has no partial
      // indexes: a run that is not paused, failed or canceled has an entry with NULL there, which never changes. The
      // generated columns are stored, because indexes of virtual columns have made servers crash (MDEV-16222 and others).
      `CREATE TABLE IF NOT EXISTS pawl_runs (
        id VARBINARY(36) NOT NULL PRIMARY KEY,
        workflow VARBINARY(255) NOT NULL,
        version VARBINARY(255) NOT NULL,
        queue VARBINARY(255) NOT NULL,
        priority INT NOT NULL,
        status VARBINARY(16) NOT NULL,
        input LONGTEXT NOT NULL,
        output LONGTEXT NULL,
        error LONGTEXT NULL,
        waiting LONGTEXT NULL,
        hero_type VARBINARY(255) NULL,
        hero_id VARBINARY(1024) NULL,
        hero_key VARBINARY(2048) NULL,
        start_key VARBINARY(1024) NULL,
        tags LONGTEXT NULL,
        parent_id VARBINARY(36) NULL,
        parent_node VARBINARY(1024) NULL,
        parent_index INT NULL,
        parent_attempt INT NULL,
        created_at BIGINT NOT NULL,
        started_at BIGINT NULL,
        finished_at BIGINT NULL,
        started_by LONGTEXT NULL,
        schedule LONGTEXT NULL,
        unsuccessful VARBINARY(16) GENERATED ALWAYS AS (${unsuccessfulSql}) STORED,
        fingerprint VARBINARY(16) GENERATED ALWAYS AS (${fingerprintSql}) STORED,
        UNIQUE KEY hero_key (hero_key),
        UNIQUE KEY start_key (workflow, start_key),
        KEY newest (created_at),
        KEY newest_of_workflow (workflow, created_at),
        KEY parent (parent_id, created_at),
        KEY hero (hero_id, hero_type, created_at),
        KEY unsuccessful (unsuccessful, created_at, id, workflow, fingerprint)
      ) ${tableOptions}`,
      // Claims read ready and parked tasks from one index. Ready tasks (state 1) are ordered by `rank_no`, their
      // negated priority (before MariaDB 10.8 an index cannot be descending), then by due_at. Parked tasks (state 0)
      // are ordered by due_at alone, so their rank_no is 0. Finished runs have no task, and tasks that sleep, are
      // paused or are owned are outside the range that a claim reads. The columns stay below InnoDB's limit of 3072
      // bytes per key.
      `CREATE TABLE IF NOT EXISTS pawl_tasks (
        run_id VARBINARY(36) NOT NULL PRIMARY KEY,
        workflow VARBINARY(255) NOT NULL,
        version VARBINARY(255) NOT NULL,
        priority INT NOT NULL,
        state TINYINT NOT NULL,
        rank_no BIGINT NOT NULL,
        due_at BIGINT NULL,
        owner VARBINARY(255) NULL,
        epoch BIGINT NULL,
        deliveries INT NOT NULL DEFAULT 0,
        pending_messages INT NOT NULL DEFAULT 0,
        fresh TINYINT NOT NULL,
        KEY due (state, workflow, version, rank_no, due_at)
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_events (
        run_id VARBINARY(36) NOT NULL,
        seq INT NOT NULL,
        span INT NOT NULL,
        type VARBINARY(255) NOT NULL,
        node VARBINARY(1024) NULL,
        attempt INT NULL,
        outcome VARBINARY(255) NULL,
        data LONGTEXT NULL,
        at BIGINT NOT NULL,
        PRIMARY KEY (run_id, seq)
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_inbox (
        id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
        run_id VARBINARY(36) NOT NULL,
        kind VARBINARY(255) NOT NULL,
        data LONGTEXT NOT NULL,
        at BIGINT NOT NULL,
        KEY run (run_id)
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_cursors (
        run_id VARBINARY(36) NOT NULL,
        node VARBINARY(1024) NOT NULL,
        \`cursor\` LONGTEXT NULL,
        progress LONGTEXT NULL,
        at BIGINT NOT NULL,
        PRIMARY KEY (run_id, node)
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_workers (
        id VARBINARY(255) NOT NULL PRIMARY KEY,
        name VARBINARY(255) NOT NULL,
        host VARBINARY(255) NOT NULL,
        pid BIGINT NOT NULL,
        port INT,
        routes LONGTEXT NOT NULL,
        lease_ms BIGINT NOT NULL,
        epoch BIGINT NOT NULL,
        live TINYINT NOT NULL,
        started_at BIGINT NOT NULL,
        heartbeat_at BIGINT NOT NULL,
        executing LONGTEXT NULL,
        loop_lag_ms BIGINT NULL,
        schedule_set VARBINARY(64) NULL
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_workflows (
        name VARBINARY(255) NOT NULL PRIMARY KEY,
        queue VARBINARY(255) NOT NULL,
        version VARBINARY(255) NOT NULL,
        signature LONGTEXT NULL,
        graph LONGTEXT NULL,
        created_at BIGINT NOT NULL
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_queues (
        name VARBINARY(255) NOT NULL PRIMARY KEY,
        paused_at BIGINT NOT NULL,
        reason LONGTEXT NULL,
        paused_by LONGTEXT NULL
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_figures (
        minute BIGINT NOT NULL,
        workflow VARBINARY(255) NOT NULL,
        began BIGINT NOT NULL,
        completed BIGINT NOT NULL,
        failed BIGINT NOT NULL,
        canceled BIGINT NOT NULL,
        paused BIGINT NOT NULL,
        PRIMARY KEY (minute, workflow)
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_limits (
        name VARBINARY(255) NOT NULL PRIMARY KEY,
        settings LONGTEXT NOT NULL,
        override LONGTEXT NULL,
        created_at BIGINT NOT NULL
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_lanes (
        id VARBINARY(255) NOT NULL PRIMARY KEY,
        paced_until BIGINT NOT NULL DEFAULT 0,
        opens_at BIGINT NULL,
        looks_at BIGINT NULL,
        waiting_classes LONGTEXT NULL,
        KEY opens (opens_at),
        KEY looks (looks_at)
      ) ${tableOptions}`,
      // An admission reads the classes of a route that are not blocked, those with the lowest turns first.
      `CREATE TABLE IF NOT EXISTS pawl_classes (
        id VARBINARY(255) NOT NULL PRIMARY KEY,
        route VARBINARY(255) NOT NULL,
        version VARBINARY(255) NOT NULL,
        lanes LONGTEXT NOT NULL,
        turn BIGINT NOT NULL,
        blocked_on VARBINARY(255) NOT NULL,
        KEY open (route, version, blocked_on, turn),
        KEY blocked (blocked_on, turn)
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_gatherings (
        id VARBINARY(36) NOT NULL PRIMARY KEY,
        run_id VARBINARY(36) NULL
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_gathered (
        call_id VARBINARY(36) NOT NULL PRIMARY KEY,
        run_id VARBINARY(36) NOT NULL,
        position INT NOT NULL,
        workflow VARBINARY(255) NOT NULL,
        start_key VARBINARY(255) NULL,
        input LONGTEXT NULL,
        UNIQUE KEY of_run (run_id, position),
        UNIQUE KEY start_key (workflow, start_key)
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_slots (
        run_id VARBINARY(36) NOT NULL,
        lane VARBINARY(255) NOT NULL,
        node VARBINARY(255) NOT NULL DEFAULT '',
        waits TINYINT NULL DEFAULT 0,
        rank_no BIGINT NOT NULL DEFAULT 0,
        units BIGINT NOT NULL DEFAULT 1,
        owner VARBINARY(255) NULL,
        epoch BIGINT NULL,
        at BIGINT NOT NULL,
        offered_until BIGINT NULL,
        PRIMARY KEY (run_id, lane, node),
        KEY lane (lane, waits, rank_no, at)
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_start_deadlines (
        run_id VARBINARY(36) NOT NULL PRIMARY KEY,
        at BIGINT NOT NULL,
        KEY next (at)
      ) ${tableOptions}`,
      // Workers look for due schedules of their own set and of those that were put by the API.
      `CREATE TABLE IF NOT EXISTS pawl_schedules (
        name VARBINARY(255) NOT NULL PRIMARY KEY,
        app VARBINARY(255) NULL,
        set_key VARBINARY(64) NOT NULL,
        hash VARBINARY(64) NOT NULL,
        incarnation VARBINARY(64) NOT NULL,
        revision BIGINT NOT NULL,
        status VARBINARY(16) NOT NULL,
        next_for BIGINT NULL,
        next_at BIGINT NULL,
        workflow VARBINARY(255) NOT NULL,
        definition LONGTEXT NOT NULL,
        state LONGTEXT NOT NULL,
        created_at BIGINT NOT NULL,
        KEY next (set_key, next_at)
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_occurrences (
        id VARBINARY(36) NOT NULL PRIMARY KEY,
        schedule VARBINARY(255) NOT NULL,
        incarnation VARBINARY(64) NOT NULL,
        scheduled_for BIGINT NOT NULL,
        scheduled_until BIGINT NOT NULL,
        occurrence_count INT NOT NULL,
        outcome VARBINARY(32) NOT NULL,
        pending VARBINARY(16) NULL,
        at BIGINT NOT NULL,
        detail LONGTEXT NOT NULL,
        KEY of_schedule (schedule, scheduled_for, id),
        KEY pending_of_schedule (schedule, pending, scheduled_for, id),
        KEY old (at)
      ) ${tableOptions}`,
      `CREATE TABLE IF NOT EXISTS pawl_schedule_apps (
        app VARBINARY(255) NOT NULL PRIMARY KEY,
        set_key VARBINARY(64) NOT NULL,
        revision BIGINT NOT NULL,
        sets LONGTEXT NOT NULL
      ) ${tableOptions}`,
      stepExecutionsView,
      ...sqlProcedures,
    ],
  },
];
