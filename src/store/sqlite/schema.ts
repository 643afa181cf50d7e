/**
 * The tables.
 *
 * - pawl_runs: one row per run, kept after the run has ended. It contains the values fixed when the run was created,
 *   and those computed from the log when the run was last parked or ended. No step writes to it. No column says
 *   "running": a run is running while its task has an owner.
 * - pawl_tasks: one row per run that has not ended, with when it is due and which worker owns it. state 0 is parked
 *   (until due_at, or if that is NULL until a message or a commit wakes the run), 1 ready, 2 owned. `workflow` and
 *   `priority` are what claims search by: at first the run's own values, later the values that its last park has set.
 *   The run's row keeps the first values.
 * - pawl_events: the log, from which everything else is computed. One row per commit and run; a row contains the events
 *   numbered seq … seq + span - 1.
 * - pawl_inbox: messages to runs, kept until the run's owner has copied them to the log.
 * - pawl_cursors: the position of a resumable step, one row per (run, node), overwritten at each checkpoint.
 * - pawl_workers: the workers, live and dead, with their epochs. Every write of a worker is checked against its row.
 * - pawl_workflows: what a client needs to know of a workflow to start it by name.
 * - pawl_queues: the paused queues, with the time and the reason. A queue that is not paused has no row.
 * - pawl_figures: how many runs of each workflow began and ended in each minute. Processes add their counts now and then.
 * - pawl_limits: the limits as they were last registered.
 * - pawl_lanes: one row per lane, the part of a limit that belongs to one key. Transactions that take slots lock it.
 * - pawl_classes: one row per class, a set of ready tasks that need slots in the same lanes; its id is their route. `turn`
 *   orders the classes, and `blocked_on` names the lane that had no free slot ('' when there is none).
 * - pawl_gatherings: leads starts of one key to the run that gathers them, until it begins; see contract/gatherings.ts.
 * - pawl_gathered: the starts of a run whose input is a list, with their inputs until it begins.
 * - pawl_slots: one row per held slot. The rows of a lane are what it has in use. `waits` is 1 for a step that waits for one, and NULL
 *   for a step whose run was parked and has let an offer lapse: it is out of the line until the run is executed.
 * - pawl_start_deadlines: one row per run that must begin by an instant. It stays until the instant has come.
 * - pawl_schedules: one row per schedule. `next_for` is the instant of its next occurrence, `next_at` when it must be looked
 *   at, because that occurrence is due (with jitter) or a run of it has ended.
 * - pawl_occurrences: the ledger, one row per occurrence of a schedule, or for consecutive skipped ones. The id is that of
 *   the occurrence's run. `pending` is set while the schedule still has to look at the row.
 * - pawl_schedule_apps: per application, the set of schedules that is in force.
 * - pawl_migrations: the migrations that have been applied.
 * - pawl_step_executions: a view for humans, computed from the logs (step-executions.ts).
 *
 * Instants are epoch milliseconds. Text is compared byte for byte (BINARY is SQLite's default collation).
 * There are no foreign keys: they cost time on the hot path, and all rows are written by one function.
 */

import { fingerprintSql, unsuccessfulSql } from "../sql/generated-columns.js";
import type { Migration } from "../sql/migrations.js";
import { stepExecutionsView } from "./step-executions.js";

/**
 * All tables are rowid tables with a separate index for the key. WITHOUT ROWID would store event rows of up to 1 MiB in
 * a b-tree ordered by key: 1,000 runs that wrote in turns reached 28k rows/s that way, and 44k rows/s this way.
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
    finished_at INTEGER,
    started_by TEXT,
    schedule TEXT,
    unsuccessful TEXT GENERATED ALWAYS AS (${unsuccessfulSql}) VIRTUAL,
    fingerprint TEXT GENERATED ALWAYS AS (${fingerprintSql}) VIRTUAL
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
  // Without AUTOINCREMENT SQLite reuses the ids of deleted rows, and a new message could get the id of a message that
  // was already drained.
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
    heartbeat_at INTEGER NOT NULL,
    executing TEXT,
    loop_lag_ms INTEGER,
    schedule_set TEXT
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
    reason TEXT,
    paused_by TEXT
  )`,
  `CREATE TABLE pawl_figures (
    minute INTEGER NOT NULL,
    workflow TEXT NOT NULL,
    began INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    canceled INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    PRIMARY KEY (minute, workflow)
  )`,
  `CREATE TABLE pawl_limits (
    name TEXT NOT NULL PRIMARY KEY,
    settings TEXT NOT NULL,
    override TEXT,
    created_at INTEGER NOT NULL
  )`,
  `CREATE TABLE pawl_lanes (
    id TEXT NOT NULL PRIMARY KEY,
    paced_until INTEGER NOT NULL DEFAULT 0,
    opens_at INTEGER,
    looks_at INTEGER,
    waiting_classes TEXT
  )`,
  `CREATE TABLE pawl_classes (
    id TEXT NOT NULL PRIMARY KEY,
    route TEXT NOT NULL,
    version TEXT NOT NULL,
    lanes TEXT NOT NULL,
    turn INTEGER NOT NULL,
    blocked_on TEXT NOT NULL
  )`,
  "CREATE TABLE pawl_gatherings (id TEXT NOT NULL PRIMARY KEY, run_id TEXT)",
  `CREATE TABLE pawl_gathered (
    call_id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    workflow TEXT NOT NULL,
    start_key TEXT,
    input TEXT
  )`,
  `CREATE TABLE pawl_slots (
    run_id TEXT NOT NULL,
    lane TEXT NOT NULL,
    node TEXT NOT NULL DEFAULT '',
    waits INTEGER DEFAULT 0,
    rank_no INTEGER NOT NULL DEFAULT 0,
    units INTEGER NOT NULL DEFAULT 1,
    owner TEXT,
    epoch INTEGER,
    at INTEGER NOT NULL,
    offered_until INTEGER,
    PRIMARY KEY (run_id, lane, node)
  )`,
  `CREATE TABLE pawl_start_deadlines (
    run_id TEXT NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL
  )`,
  `CREATE TABLE pawl_schedules (
    name TEXT NOT NULL PRIMARY KEY,
    app TEXT,
    set_key TEXT NOT NULL,
    hash TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    revision INTEGER NOT NULL,
    status TEXT NOT NULL,
    next_for INTEGER,
    next_at INTEGER,
    workflow TEXT NOT NULL,
    definition TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL
  )`,
  `CREATE TABLE pawl_occurrences (
    id TEXT NOT NULL PRIMARY KEY,
    schedule TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    scheduled_for INTEGER NOT NULL,
    scheduled_until INTEGER NOT NULL,
    occurrence_count INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    pending TEXT,
    at INTEGER NOT NULL,
    detail TEXT NOT NULL
  )`,
  `CREATE TABLE pawl_schedule_apps (
    app TEXT NOT NULL PRIMARY KEY,
    set_key TEXT NOT NULL,
    revision INTEGER NOT NULL,
    sets TEXT NOT NULL
  )`,
];

const indexes = [
  // The database refuses a second active run with the same hero key, and a second run with the same start key.
  "CREATE UNIQUE INDEX pawl_runs_hero_key ON pawl_runs (hero_key) WHERE hero_key IS NOT NULL",
  "CREATE UNIQUE INDEX pawl_runs_start_key ON pawl_runs (workflow, start_key) WHERE start_key IS NOT NULL",
  // Runs are listed newest first, then by id. The index lacks the id: 36 bytes per row would only help runs that were
  // created in the same millisecond.
  "CREATE INDEX pawl_runs_created ON pawl_runs (created_at)",
  "CREATE INDEX pawl_runs_workflow ON pawl_runs (workflow, created_at)",
  // These two indexes are partial, so that only runs with a hero or a parent have entries in them.
  "CREATE INDEX pawl_runs_hero ON pawl_runs (hero_id, hero_type, created_at) WHERE hero_id IS NOT NULL",
  "CREATE INDEX pawl_runs_parent ON pawl_runs (parent_id, created_at) WHERE parent_id IS NOT NULL",
  // Paused, failed and canceled runs: lists by status, counts, and errors by fingerprint read this index alone.
  `CREATE INDEX pawl_runs_unsuccessful ON pawl_runs (unsuccessful, created_at, id, workflow, fingerprint)
    WHERE unsuccessful IS NOT NULL`,
  // The claim reads these two indexes. Owned, paused and finished runs are in neither, sleeping runs only in the
  // second.
  "CREATE INDEX pawl_tasks_ready ON pawl_tasks (workflow, version, priority DESC, due_at) WHERE state = 1",
  "CREATE INDEX pawl_tasks_due ON pawl_tasks (workflow, version, due_at) WHERE state = 0 AND due_at IS NOT NULL",
  // The heartbeat reads this index of the owned runs with messages, which is almost always empty.
  "CREATE INDEX pawl_tasks_with_messages ON pawl_tasks (owner) WHERE pending_messages > 0 AND owner IS NOT NULL",
  "CREATE INDEX pawl_inbox_run ON pawl_inbox (run_id)",
  // An admission reads the classes of a route that are not blocked, those with the lowest turns first.
  "CREATE INDEX pawl_classes_open ON pawl_classes (route, version, turn) WHERE blocked_on = ''",
  "CREATE INDEX pawl_classes_blocked ON pawl_classes (blocked_on, turn) WHERE blocked_on <> ''",
  "CREATE INDEX pawl_start_deadlines_next ON pawl_start_deadlines (at, run_id)",
  "CREATE INDEX pawl_slots_lane ON pawl_slots (lane, waits, rank_no, at)",
  "CREATE INDEX pawl_lanes_opens ON pawl_lanes (opens_at) WHERE opens_at IS NOT NULL",
  "CREATE INDEX pawl_lanes_looks ON pawl_lanes (looks_at) WHERE looks_at IS NOT NULL",
  "CREATE UNIQUE INDEX pawl_gathered_of_run ON pawl_gathered (run_id, position)",
  "CREATE UNIQUE INDEX pawl_gathered_start_key ON pawl_gathered (workflow, start_key) WHERE start_key IS NOT NULL",
  // Workers look for due schedules of their own set and of those that were put by the API.
  "CREATE INDEX pawl_schedules_next ON pawl_schedules (set_key, next_at, name) WHERE next_at IS NOT NULL",
  "CREATE INDEX pawl_occurrences_of_schedule ON pawl_occurrences (schedule, scheduled_for, id)",
  "CREATE INDEX pawl_occurrences_pending ON pawl_occurrences (schedule, pending, scheduled_for) WHERE pending IS NOT NULL",
  "CREATE INDEX pawl_occurrences_old ON pawl_occurrences (at)",
];

export const migrations: readonly Migration[] = [
  { version: 1, name: "tables", statements: [...tables, ...indexes, stepExecutionsView] },
];

/** Runs before the first migration, which is recorded in this table. */
export const createMigrationsTable =
  "CREATE TABLE IF NOT EXISTS pawl_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, at INTEGER NOT NULL)";
