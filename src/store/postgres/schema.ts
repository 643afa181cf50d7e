/**
 * The tables on PostgreSQL, and the purpose of each.
 *
 * - `pawl_workflows`: one row per registered workflow, so that clients without its code can start it by name.
 * - `pawl_workers`: one row per worker. Its columns `epoch` and `live` are the fence: every write of a worker locks
 *   this row in the same transaction, so that no other worker can reap the writer meanwhile.
 * - `pawl_runs`: one row per run, until the run is deleted. It is written when the run is created, parked and finished,
 *   never per step. `status` is the last written status; "running" is not stored, it means that the task has `state` 2.
 * - `pawl_tasks`: the queue, one row per run that has not ended. `due_at` says when the run is due; `owner` and `epoch`
 *   say which worker owns it. `state` is 0 parked, 1 ready, 2 owned. Claims search by `workflow` (the route) and
 *   `priority`: a park may change these two columns, while the run's row keeps the original values. `pending_messages`
 *   counts the undrained rows of the run's inbox; senders and a parking owner lock the task's row, so that no run is
 *   parked while a message arrives.
 * - `pawl_events`: the log, which is the truth about a run. One row per transition; a row holds the events with the
 *   numbers seq … seq + span - 1.
 * - `pawl_inbox`: messages that the run's owner has not yet written into the log. Their ids are assigned under the lock
 *   of the task's row, so within a run they grow in the order of commit.
 * - `pawl_cursors`: the checkpoints of resumable steps and the progress of steps, one row per (run, node); each
 *   checkpoint overwrites the last.
 * - `pawl_queues`: one row per paused queue, with the instant and the reason.
 * - `pawl_figures`: how many runs of each workflow began and ended in each minute. Processes add their counts now and
 *   then.
 * - `pawl_limits`: the limits as they were last registered.
 * - `pawl_lanes`: one row per lane, the part of a limit that belongs to one key. Transactions that take slots lock it.
 * - `pawl_classes`: one row per class, a set of ready tasks that need slots in the same lanes; its id is their route.
 *   `turn` orders the classes, and `blocked_on` names the lane that had no free slot ('' when there is none).
 * - `pawl_gatherings`: leads starts of one key to the run that gathers them, until it begins; see contract/gatherings.ts.
 * - `pawl_gathered`: the starts of a run whose input is a list, with their inputs until it begins.
 * - `pawl_start_deadlines`: one row per run that must begin by an instant. It stays until the instant has come.
 * - `pawl_slots`: one row per held slot. The rows of a lane are what it has in use. `waits` is 1 for a step that waits for one, and NULL
 *   for a step whose run was parked and has let an offer lapse: it is out of the line until the run is executed.
 * - `pawl_schedules`: one row per schedule. `next_for` is the instant of its next occurrence, `next_at` when it must be looked
 *   at, because that occurrence is due (with jitter) or a run of it has ended.
 * - `pawl_occurrences`: the ledger, one row per occurrence of a schedule, or for consecutive skipped ones. The id is that
 *   of the occurrence's run. `pending` is set while the schedule still has to look at the row.
 * - `pawl_schedule_apps`: per application, the set of schedules that is in force.
 * - `pawl_migrations`: the applied migrations.
 * - `pawl_step_executions`: a view for queries by hand, computed from the logs (step-executions.ts).
 * - `pawl_start`, `pawl_signal`: functions for programs in other languages (sql-functions.ts).
 *
 * All instants are epoch milliseconds. Payloads are text, because jsonb refuses \u0000 and costs parsing. Names and
 * keys are compared byte for byte (COLLATE "C"). Columns of fixed width come first, so that alignment wastes no bytes.
 * There are no foreign keys, because each child would lock its parent's row.
 */

import { fingerprintSql, unsuccessfulSql } from "../sql/generated-columns.js";
import type { Migration } from "../sql/migrations.js";
import { createSqlFunctions } from "./sql-functions.js";
import { stepExecutionsView } from "./step-executions.js";
import type { Tables } from "./tables.js";

export function migrationsOf(tables: Tables): readonly Migration[] {
  return [
    {
      version: 1,
      name: "tables",
      statements: [...createTables(tables), ...stepExecutionsView(tables), ...createSqlFunctions(tables)],
    },
  ];
}

/** No migration creates this table, because it must exist before the first migration can be recorded. */
export const createMigrationsTable = (t: Tables): string =>
  `CREATE TABLE IF NOT EXISTS ${t.migrations} (at bigint NOT NULL, version integer PRIMARY KEY, name text NOT NULL)`;

/**
 * Rows of a queue are inserted and deleted all day. By default PostgreSQL vacuums a table when 20 % of its rows are
 * dead, which is too late for a large one.
 */
const frequentVacuum =
  "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0";

const createTables = (t: Tables): readonly string[] => [
  `CREATE TABLE ${t.workflows} (
    created_at bigint NOT NULL,
    name text COLLATE "C" PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    signature text,
    graph text
  )`,

  `CREATE TABLE ${t.queues} (
    paused_at bigint NOT NULL,
    name text COLLATE "C" PRIMARY KEY,
    reason text,
    paused_by text
  )`,

  `CREATE TABLE ${t.figures} (
    minute bigint NOT NULL,
    began bigint NOT NULL,
    completed bigint NOT NULL,
    failed bigint NOT NULL,
    canceled bigint NOT NULL,
    paused bigint NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    PRIMARY KEY (minute, workflow)
  ) WITH (fillfactor = 50)`,

  `CREATE TABLE ${t.schedules} (
    revision bigint NOT NULL,
    next_for bigint,
    next_at bigint,
    created_at bigint NOT NULL,
    name text COLLATE "C" PRIMARY KEY,
    app text COLLATE "C",
    set_key text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    incarnation text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    definition text NOT NULL,
    state text NOT NULL
  ) WITH (fillfactor = 70, ${frequentVacuum})`,
  // Workers look for due schedules of their own set and of those that were put by the API.
  `CREATE INDEX pawl_schedules_next ON ${t.schedules} (set_key, next_at, name) WHERE next_at IS NOT NULL`,

  `CREATE TABLE ${t.occurrences} (
    id uuid PRIMARY KEY,
    scheduled_for bigint NOT NULL,
    scheduled_until bigint NOT NULL,
    at bigint NOT NULL,
    occurrence_count integer NOT NULL,
    schedule text COLLATE "C" NOT NULL,
    incarnation text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    pending text COLLATE "C",
    detail text NOT NULL
  )`,
  `CREATE INDEX pawl_occurrences_of_schedule ON ${t.occurrences} (schedule, scheduled_for, id)`,
  `CREATE INDEX pawl_occurrences_pending ON ${t.occurrences} (schedule, pending, scheduled_for, id) WHERE pending IS NOT NULL`,
  `CREATE INDEX pawl_occurrences_old ON ${t.occurrences} (at)`,

  `CREATE TABLE ${t.schedule_apps} (
    revision bigint NOT NULL,
    app text COLLATE "C" PRIMARY KEY,
    set_key text COLLATE "C" NOT NULL,
    sets text NOT NULL
  )`,

  // Every commit locks a row and every heartbeat updates one: fillfactor 50 keeps the new versions on the same page.
  `CREATE TABLE ${t.workers} (
    epoch bigint NOT NULL,
    started_at bigint NOT NULL,
    heartbeat_at bigint NOT NULL,
    lease_ms bigint NOT NULL,
    pid bigint NOT NULL,
    loop_lag_ms bigint,
    port integer,
    live boolean NOT NULL,
    id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    host text NOT NULL,
    routes text NOT NULL,
    executing text,
    schedule_set text COLLATE "C"
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200)`,

  // Rows of dead workers stay for a while; a heartbeat searches only the live workers for expired leases.
  `CREATE INDEX pawl_workers_live ON ${t.workers} (id) WHERE live`,

  // fillfactor 40: when the run ends, its row is written again and is larger. Free space on the same page makes that
  // write a heap-only update, which adds no index entries (200 bytes of WAL less per run).
  `CREATE TABLE ${t.runs} (
    id uuid PRIMARY KEY,
    parent_id uuid,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    priority integer NOT NULL,
    parent_index integer,
    parent_attempt integer,
    workflow text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    hero_type text COLLATE "C",
    hero_id text COLLATE "C",
    hero_key text COLLATE "C",
    start_key text COLLATE "C",
    parent_node text COLLATE "C",
    tags text COLLATE "C",
    input text NOT NULL,
    output text,
    error text,
    waiting text,
    started_by text,
    schedule text,
    unsuccessful text COLLATE "C" GENERATED ALWAYS AS (${unsuccessfulSql}) STORED,
    fingerprint text COLLATE "C" GENERATED ALWAYS AS (${fingerprintSql}) STORED
  ) WITH (fillfactor = 40)`,
  // These two indexes serve lists, newest first, of all runs and of one workflow's runs. The other indexes are partial,
  // because every start writes to each index that is not.
  `CREATE INDEX pawl_runs_newest ON ${t.runs} (created_at, id)`,
  `CREATE INDEX pawl_runs_newest_of_workflow ON ${t.runs} (workflow, created_at, id)`,
  `CREATE UNIQUE INDEX pawl_runs_start_key ON ${t.runs} (workflow, start_key) WHERE start_key IS NOT NULL`,
  // The key is cleared when the run ends, so it is unique among active runs.
  `CREATE UNIQUE INDEX pawl_runs_hero_key ON ${t.runs} (hero_key) WHERE hero_key IS NOT NULL`,
  `CREATE INDEX pawl_runs_hero ON ${t.runs} (hero_id, hero_type, created_at) WHERE hero_id IS NOT NULL`,
  `CREATE INDEX pawl_runs_parent ON ${t.runs} (parent_id, created_at, id) WHERE parent_id IS NOT NULL`,
  // Paused, failed and canceled runs: lists by status, counts, and errors by fingerprint read this index alone. It must
  // not mention `status` itself: then no update that changes the status could be a heap-only update. The generated
  // column stays NULL while a run begins and completes.
  `CREATE INDEX pawl_runs_unsuccessful ON ${t.runs} (unsuccessful, created_at, id, workflow, fingerprint)
    WHERE unsuccessful IS NOT NULL`,

  `CREATE TABLE ${t.tasks} (
    run_id uuid PRIMARY KEY,
    due_at bigint,
    epoch bigint,
    priority integer NOT NULL,
    deliveries integer NOT NULL,
    pending_messages integer NOT NULL,
    state smallint NOT NULL,
    fresh boolean NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    owner text COLLATE "C"
  ) WITH (fillfactor = 50, ${frequentVacuum})`,
  // The claim reads these two indexes from their beginning. Sleeping tasks come after the due ones; tasks that are
  // owned or have no due time (paused, waiting for a message) are in neither.
  `CREATE INDEX pawl_tasks_ready ON ${t.tasks} (workflow, version, priority DESC, due_at) WHERE state = 1`,
  `CREATE INDEX pawl_tasks_due ON ${t.tasks} (workflow, version, due_at) WHERE state = 0 AND due_at IS NOT NULL`,
  // Heartbeats search this index. It is nearly always empty; an index of all owned tasks would get an entry with every
  // claim.
  `CREATE INDEX pawl_tasks_with_messages ON ${t.tasks} (owner) WHERE owner IS NOT NULL AND pending_messages > 0`,

  `CREATE TABLE ${t.events} (
    run_id uuid NOT NULL,
    at bigint NOT NULL,
    seq integer NOT NULL,
    span integer NOT NULL,
    attempt integer,
    type text COLLATE "C" NOT NULL,
    node text COLLATE "C",
    outcome text COLLATE "C",
    data text,
    PRIMARY KEY (run_id, seq)
  )`,

  `CREATE TABLE ${t.inbox} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id uuid NOT NULL,
    at bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    data text NOT NULL
  ) WITH (${frequentVacuum})`,
  `CREATE INDEX pawl_inbox_run ON ${t.inbox} (run_id, id)`,

  `CREATE TABLE ${t.limits} (
    created_at bigint NOT NULL,
    name text COLLATE "C" PRIMARY KEY,
    settings text NOT NULL,
    override text
  )`,
  `CREATE TABLE ${t.lanes} (
    paced_until bigint NOT NULL DEFAULT 0,
    opens_at bigint,
    looks_at bigint,
    id text COLLATE "C" PRIMARY KEY,
    waiting_classes text
  ) WITH (fillfactor = 50, ${frequentVacuum})`,
  `CREATE INDEX pawl_lanes_opens ON ${t.lanes} (opens_at) WHERE opens_at IS NOT NULL`,
  `CREATE INDEX pawl_lanes_looks ON ${t.lanes} (looks_at) WHERE looks_at IS NOT NULL`,
  `CREATE TABLE ${t.classes} (
    turn bigint NOT NULL,
    id text COLLATE "C" PRIMARY KEY,
    route text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    blocked_on text COLLATE "C" NOT NULL,
    lanes text NOT NULL
  ) WITH (fillfactor = 50, ${frequentVacuum})`,
  // An admission reads the classes of a route that are not blocked, and those that are blocked on a lane, in both cases those with
  // the lowest turns first. Each class is in one of the two indexes, because every admission writes the turn of its classes.
  `CREATE INDEX pawl_classes_open ON ${t.classes} (route, version, turn) WHERE blocked_on = ''`,
  `CREATE INDEX pawl_classes_blocked ON ${t.classes} (blocked_on, turn) WHERE blocked_on <> ''`,
  `CREATE TABLE ${t.gatherings} (id uuid PRIMARY KEY, run_id uuid) WITH (fillfactor = 50, ${frequentVacuum})`,
  `CREATE TABLE ${t.gathered} (
    call_id uuid PRIMARY KEY,
    run_id uuid NOT NULL,
    position integer NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    start_key text COLLATE "C",
    input text
  )`,
  `CREATE UNIQUE INDEX pawl_gathered_of_run ON ${t.gathered} (run_id, position)`,
  `CREATE UNIQUE INDEX pawl_gathered_start_key ON ${t.gathered} (workflow, start_key) WHERE start_key IS NOT NULL`,

  `CREATE TABLE ${t.slots} (
    run_id uuid NOT NULL,
    epoch bigint,
    at bigint NOT NULL,
    rank_no bigint NOT NULL DEFAULT 0,
    units bigint NOT NULL DEFAULT 1,
    offered_until bigint,
    waits smallint DEFAULT 0,
    lane text COLLATE "C" NOT NULL,
    node text COLLATE "C" NOT NULL DEFAULT '',
    owner text COLLATE "C",
    PRIMARY KEY (run_id, lane, node)
  ) WITH (${frequentVacuum})`,
  `CREATE INDEX pawl_slots_lane ON ${t.slots} (lane, waits, rank_no, at)`,

  `CREATE TABLE ${t.start_deadlines} (
    run_id uuid PRIMARY KEY,
    at bigint NOT NULL
  ) WITH (${frequentVacuum})`,
  // Without the id of the run: an index with both columns would have all that a search for runs reads, and a plan that was made
  // while the table was empty would read all of that index.
  `CREATE INDEX pawl_start_deadlines_next ON ${t.start_deadlines} (at)`,

  `CREATE TABLE ${t.cursors} (
    run_id uuid NOT NULL,
    at bigint NOT NULL,
    node text COLLATE "C" NOT NULL,
    cursor text,
    progress text,
    PRIMARY KEY (run_id, node)
  ) WITH (fillfactor = 50, ${frequentVacuum})`,
];
