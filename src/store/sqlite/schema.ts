/**
 * The tables.
 *
 * - pawl_runs: one row per run, kept after its end. What was fixed at birth, and what was computed from the log when the
 *   run last parked or ended. Nothing here is written per step. "running" is in no column: a run is running while its
 *   task has an owner.
 * - pawl_tasks: one row per run that has not ended: is it due, when, and who has it. state 0 is parked (due_at NULL:
 *   until somebody moves it), 1 ready, 2 owned. Small rows that come and go. `workflow` and `priority` are the run's until
 *   a park says otherwise: what claims go by, while the run's row keeps its birth.
 * - pawl_events: the log, the truth. One row per commit and run; a row holds the events numbered seq … seq + span - 1.
 * - pawl_inbox: messages to runs, until their owner has copied them to the log.
 * - pawl_cursors: where a resumable step is, one row per (run, node), overwritten at each checkpoint.
 * - pawl_workers: who is alive, and with which epoch; every write of a worker is checked against its row.
 * - pawl_workflows: what clients need to know of a workflow to start it by name.
 * - pawl_queues: the queues that are paused, since when and why. Those that are not have no row.
 * - pawl_migrations: which of the migrations below are done.
 * - pawl_step_executions: a view for people, computed from the logs (step-executions.ts).
 *
 * Instants are epoch milliseconds. Text is compared byte for byte (BINARY is SQLite's default collation).
 * There are no foreign keys: they cost on the hot path, and everything is written by one function.
 */
import type { Migration } from "../sql/migrations.js";
import { stepExecutionsView } from "./step-executions.js";

/**
 * Rowid tables throughout, with the key as an index beside them: WITHOUT ROWID would put event rows of up to 1 MiB into
 * a b-tree in the order of their keys, and 1,000 runs that take turns wrote 28k rows/s that way instead of 44k.
 */
const tables = [
  `CREATE TABLE pawl_runs (
    id TEXT NOT NULL PRIMARY KEY,
    workflow TEXT NOT NULL,
    version TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    status TEXT NOT NULL,
    input TEXT NOT NULL,
    output TEXT,
    error TEXT,
    waiting TEXT,
    hero_type TEXT,
    hero_id TEXT,
    hero_key TEXT,
    start_key TEXT,
    tags TEXT,
    parent_id TEXT,
    parent_node TEXT,
    parent_index INTEGER,
    parent_attempt INTEGER,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER
  )`,
  `CREATE TABLE pawl_tasks (
    run_id TEXT NOT NULL PRIMARY KEY,
    workflow TEXT NOT NULL,
    version TEXT NOT NULL,
    priority INTEGER NOT NULL,
    state INTEGER NOT NULL,
    due_at INTEGER,
    owner TEXT,
    epoch INTEGER,
    deliveries INTEGER NOT NULL,
    pending_messages INTEGER NOT NULL,
    fresh INTEGER NOT NULL
  )`,
  `CREATE TABLE pawl_events (
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    span INTEGER NOT NULL,
    type TEXT NOT NULL,
    node TEXT,
    attempt INTEGER,
    outcome TEXT,
    data TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (run_id, seq)
  )`,
  // AUTOINCREMENT: otherwise the number of a deleted row is given again, and a reader would take the new for the old.
  `CREATE TABLE pawl_inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    at INTEGER NOT NULL
  )`,
  `CREATE TABLE pawl_cursors (
    run_id TEXT NOT NULL,
    node TEXT NOT NULL,
    cursor TEXT,
    progress TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (run_id, node)
  )`,
  `CREATE TABLE pawl_workers (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    port INTEGER,
    routes TEXT NOT NULL,
    lease_ms INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    live INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL
  )`,
  `CREATE TABLE pawl_workflows (
    name TEXT NOT NULL PRIMARY KEY,
    queue TEXT NOT NULL,
    version TEXT NOT NULL,
    signature TEXT,
    graph TEXT,
    created_at INTEGER NOT NULL
  )`,
  `CREATE TABLE pawl_queues (
    name TEXT NOT NULL PRIMARY KEY,
    paused_at INTEGER NOT NULL,
    reason TEXT
  )`,
];

const indexes = [
  // One active run per hero, one run per start key: the database refuses the second.
  "CREATE UNIQUE INDEX pawl_runs_hero_key ON pawl_runs (hero_key) WHERE hero_key IS NOT NULL",
  "CREATE UNIQUE INDEX pawl_runs_start_key ON pawl_runs (workflow, start_key) WHERE start_key IS NOT NULL",
  // Listing newest first. The id, last in that order, is left out: 36 bytes for the rare runs of one millisecond.
  "CREATE INDEX pawl_runs_created ON pawl_runs (created_at)",
  "CREATE INDEX pawl_runs_workflow ON pawl_runs (workflow, created_at)",
  // Runs that have a hero or a parent pay for these, the others do not.
  "CREATE INDEX pawl_runs_hero ON pawl_runs (hero_type, hero_id) WHERE hero_id IS NOT NULL",
  "CREATE INDEX pawl_runs_parent ON pawl_runs (parent_id) WHERE parent_id IS NOT NULL",
  // What people look for among a million completed runs (0.5 s without). OR, not IN: SQLite must find the condition of
  // a query in it word for word.
  `CREATE INDEX pawl_runs_troubled ON pawl_runs (status, created_at)
    WHERE status = 'failed' OR status = 'canceled' OR status = 'paused'`,
  // What the claim reads. Owned, paused and finished runs are in neither, sleeping ones only in the second.
  "CREATE INDEX pawl_tasks_ready ON pawl_tasks (workflow, version, priority DESC, due_at) WHERE state = 1",
  "CREATE INDEX pawl_tasks_due ON pawl_tasks (workflow, version, due_at) WHERE state = 0 AND due_at IS NOT NULL",
  // What the heartbeat reads: mail of owned runs. Almost always empty.
  "CREATE INDEX pawl_tasks_with_messages ON pawl_tasks (owner) WHERE pending_messages > 0 AND owner IS NOT NULL",
  "CREATE INDEX pawl_inbox_run ON pawl_inbox (run_id)",
];

export const migrations: readonly Migration[] = [
  { version: 1, name: "tables", statements: [...tables, ...indexes, stepExecutionsView] },
];

/** Made before the first migration: the list of those that are done. */
export const createMigrationsTable =
  "CREATE TABLE IF NOT EXISTS pawl_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, at INTEGER NOT NULL)";
