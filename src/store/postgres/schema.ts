/**
 * The tables, in the order of a run's life.
 *
 * - `pawl_workflows`: what is known of each workflow by name, so that clients without its code can start it.
 * - `pawl_workers`: one row per worker process. Its `epoch` and `live` are the fence: every write of a worker locks this
 *   row against its reaper in the same transaction.
 * - `pawl_runs`: one row per run, for as long as anybody wants to read of it. Written when the run is born, when it parks
 *   and when it ends; never per step. `status` is what was last written: "running" is not in here, it is `state = 2` of
 *   the task.
 * - `pawl_tasks`: one row per run that has not ended: when it is due (`due_at`) and who has it (`owner`, `epoch`).
 *   `workflow` and `priority` are the run's until a park says otherwise: what claims go by, while the run's row keeps its
 *   birth. `state` is 0 parked, 1 ready, 2 owned. `mail` counts the undrained rows of its inbox, and its row lock puts senders
 *   and a parking owner in order. This is the queue.
 * - `pawl_events`: the log, the truth about a run. One row per transition: it holds the events number seq … seq + span - 1.
 * - `pawl_inbox`: messages to a run that its owner has not yet written into the log. Ids are taken under the lock of the
 *   task's row, so they grow in the order of commit within a run.
 * - `pawl_cursors`: one overwritten row per (run, node) for steps that go through many items.
 * - `pawl_queues`: the queues that are paused, since when and why. Those that are not have no row.
 * - `pawl_migrations`: which of the migrations below are applied.
 * - `pawl_step_executions`: a view for people, computed from the logs (step-executions.ts).
 *
 * All instants are epoch milliseconds. Payloads are text, because jsonb refuses \u0000 and costs parsing. Names and keys
 * are compared byte for byte (COLLATE "C"). Columns of fixed width come first, so that no bytes are lost to alignment.
 * There are no foreign keys: they would lock a parent's row per child.
 */
import type { Migration } from "../sql/migrations.js";
import { stepExecutionsView } from "./step-executions.js";
import type { Tables } from "./tables.js";

export function migrationsOf(tables: Tables): readonly Migration[] {
  return [{ version: 1, name: "tables", statements: [...createTables(tables), ...stepExecutionsView(tables)] }];
}

/** Not a migration: it must be there before the first one can be recorded. */
export const createMigrationsTable = (t: Tables): string =>
  `CREATE TABLE IF NOT EXISTS ${t.migrations} (at bigint NOT NULL, version integer PRIMARY KEY, name text NOT NULL)`;

/** A queue's tables die and are born all day. Vacuum by count, not by share: 20 % of a big table would be too late. */
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
    reason text
  )`,

  // Locked by every commit and updated at every beat: room for new versions on the same page.
  `CREATE TABLE ${t.workers} (
    epoch bigint NOT NULL,
    started_at bigint NOT NULL,
    heartbeat_at bigint NOT NULL,
    lease_ms bigint NOT NULL,
    pid bigint NOT NULL,
    port integer,
    live boolean NOT NULL,
    id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    host text NOT NULL,
    routes text NOT NULL
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200)`,

  // Rows of workers that are gone stay; a beat looks for silent ones among the living only.
  `CREATE INDEX pawl_workers_live ON ${t.workers} (id) WHERE live`,

  // fillfactor 40: a run's row is written again when it ends, and is larger then. Finding room on its own page makes that
  // a heap-only update, without an entry in any index (200 bytes of WAL less per run).
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
    waiting text
  ) WITH (fillfactor = 40)`,
  // Listing, newest first, of all and of one workflow. Every start pays for each index that is not partial.
  `CREATE INDEX pawl_runs_newest ON ${t.runs} (created_at, id)`,
  `CREATE INDEX pawl_runs_newest_of_workflow ON ${t.runs} (workflow, created_at, id)`,
  `CREATE UNIQUE INDEX pawl_runs_start_key ON ${t.runs} (workflow, start_key) WHERE start_key IS NOT NULL`,
  // Cleared when the run ends, so it is unique among active runs.
  `CREATE UNIQUE INDEX pawl_runs_hero_key ON ${t.runs} (hero_key) WHERE hero_key IS NOT NULL`,
  `CREATE INDEX pawl_runs_hero ON ${t.runs} (hero_id, hero_type, created_at) WHERE hero_id IS NOT NULL`,
  `CREATE INDEX pawl_runs_parent ON ${t.runs} (parent_id, created_at) WHERE parent_id IS NOT NULL`,

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
  // The claim reads these two from their beginning. What sleeps is behind the due ones, what is paused, waits for a
  // message or is owned is in neither.
  `CREATE INDEX pawl_tasks_ready ON ${t.tasks} (workflow, version, priority DESC, due_at) WHERE state = 1`,
  `CREATE INDEX pawl_tasks_due ON ${t.tasks} (workflow, version, due_at) WHERE state = 0 AND due_at IS NOT NULL`,
  // What a beat asks for. Nearly empty at all times; an index of everything owned would cost every claim an entry.
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

  `CREATE TABLE ${t.cursors} (
    run_id uuid NOT NULL,
    at bigint NOT NULL,
    node text COLLATE "C" NOT NULL,
    cursor text,
    progress text,
    PRIMARY KEY (run_id, node)
  ) WITH (fillfactor = 50, ${frequentVacuum})`,
];
