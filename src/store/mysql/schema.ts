/**
 * The tables, for MySQL 8.0+ and MariaDB 10.6+ alike.
 *
 * pawl_runs        One row per run: its birth, and what is computed from its log when it parks or ends. Written twice in
 *                  the life of a run that never waits, never per step.
 * pawl_tasks       One row per run that has not ended: when it is due and who has it. Small, because it is all that a
 *                  claim looks at. `workflow` and `priority` are the run's until a park says otherwise: what claims go
 *                  by, while the run's row keeps its birth.
 * pawl_events      The logs. One row per commit and run: (run_id, seq) is the number of its first event, `span` how many
 *                  it holds (rows.ts).
 * pawl_inbox       Messages that their run's owner has not taken into the log yet.
 * pawl_cursors     Where resumable steps are: one overwritten row per (run, node).
 * pawl_workers     Who lives. `epoch` grows with every life; writes are fenced by (id, epoch, live).
 * pawl_workflows   Names that somebody registered.
 * pawl_queues      The queues that are paused, since when and why. Those that are not have no row.
 * pawl_migrations  Which of the migrations below are applied.
 *
 * pawl_step_executions is a view for people, computed from the logs (step-executions.ts).
 *
 * Names, keys and ids are VARBINARY: `utf8mb4_bin` ignores trailing spaces, and the collations that do not
 * (utf8mb4_nopad_bin, utf8mb4_0900_bin) exist in only one of the two each. They hold UTF-8. Payloads are LONGTEXT, so
 * that people can read them and the JSON functions take them. All instants are epoch milliseconds.
 *
 * There are no foreign keys: they lock the parent's row for each child's.
 */
import type { Migration } from "../sql/migrations.js";
import { stepExecutionsView } from "./step-executions.js";

const tableOptions = "ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin";

/** Not a migration: it must be there before the first one can be recorded. */
export const createMigrationsTable = `CREATE TABLE IF NOT EXISTS pawl_migrations (
  version INT NOT NULL PRIMARY KEY,
  name VARBINARY(255) NOT NULL,
  at BIGINT NOT NULL
) ${tableOptions}`;

/** DDL commits by itself here: each statement must be one that can be run again. Indexes are made with their table. */
export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: "tables",
    statements: [
      // hero_key and start_key: a unique index takes any number of NULLs, which is what a partial index would be for.
      // The listing indexes end with the primary key by themselves, so they give (created_at, id) in order.
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
        UNIQUE KEY hero_key (hero_key),
        UNIQUE KEY start_key (workflow, start_key),
        KEY newest (created_at),
        KEY newest_of_workflow (workflow, created_at),
        KEY parent (parent_id)
      ) ${tableOptions}`,
      // One index serves both kinds of claims. Ready tasks (state 1) are taken by \`rank_no\`, their negated priority (an
      // index cannot descend before MariaDB 10.8), then by due_at; parked ones (state 0) by due_at alone, so their
      // rank_no is 0. Finished runs have no task, and sleeping, paused and owned ones are not in the range that is read.
      // version's 255 bytes and the rest stay below InnoDB's 3072 bytes per key.
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
        deliveries INT NOT NULL,
        pending_messages INT NOT NULL,
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
        heartbeat_at BIGINT NOT NULL
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
        reason LONGTEXT NULL
      ) ${tableOptions}`,
      stepExecutionsView,
    ],
  },
];
