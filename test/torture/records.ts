/** The contents of the database, read with the checker's own SQL. It shares no code with the library. */
import type { RawSql, Row } from "../support/raw-sql.js";

export interface LogEvent {
  readonly seq: number;
  readonly type: string;
  readonly node: string | null;
  readonly attempt: number | null;
  readonly outcome: string | null;
  readonly data: Readonly<Record<string, any>>;
  readonly at: number;
}

export interface RunRow {
  readonly id: string;
  readonly workflow: string;
  readonly status: string;
  readonly input: string;
  readonly output: string | null;
  readonly error: string | null;
  readonly startKey: string | null;
  readonly parentId: string | null;
  readonly parentNode: string | null;
  readonly parentIndex: number | null;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly waiting: string | null;
}

export interface TaskRow {
  readonly runId: string;
  /** 0 parked, 1 ready, 2 owned. */
  readonly state: number;
  readonly dueAt: number | null;
  readonly owner: string | null;
  readonly pendingMessages: number;
}

export interface InboxRow {
  readonly runId: string;
  readonly kind: string;
  readonly data: string;
}

export interface UserRow {
  readonly runId: string;
  readonly node: string;
  readonly token: string;
}

export interface Records {
  readonly runs: ReadonlyMap<string, RunRow>;
  readonly logs: ReadonlyMap<string, readonly LogEvent[]>;
  readonly tasks: readonly TaskRow[];
  readonly inbox: readonly InboxRow[];
  readonly userRows: readonly UserRow[];
  readonly counters: readonly number[];
  /** Whole rows of the log: run, first number, span, and how many events the row really contains. */
  readonly spans: readonly {
    readonly run: string;
    readonly seq: number;
    readonly span: number;
    readonly held: number;
  }[];
}

export async function readRecords(sql: RawSql): Promise<Records> {
  const runs = await sql.query(
    `SELECT id, workflow, status, input, output, error, start_key, parent_id, parent_node, parent_index, created_at, started_at,
      finished_at, waiting FROM pawl_runs`,
  );
  const events = await sql.query(
    "SELECT run_id, seq, span, type, node, attempt, outcome, data, at FROM pawl_events ORDER BY run_id, seq",
  );
  const tasks = await sql.query("SELECT run_id, state, due_at, owner, pending_messages FROM pawl_tasks");
  const inbox = await sql.query("SELECT run_id, kind, data FROM pawl_inbox ORDER BY id");
  const rows = await sql.query("SELECT run_id, node, token FROM torture_rows");
  const counters = await sql.query("SELECT n FROM torture_counters ORDER BY id");

  const logs = new Map<string, LogEvent[]>();
  const spans = [];
  for (const row of events) {
    const run = String(row.run_id);
    const unpacked = eventsOf(row);
    spans.push({ run, seq: Number(row.seq), span: Number(row.span), held: unpacked.length });
    const log = logs.get(run);
    if (log === undefined) logs.set(run, unpacked);
    else log.push(...unpacked);
  }
  return {
    runs: new Map(runs.map((row) => [String(row.id), runOf(row)])),
    logs,
    spans,
    tasks: tasks.map((row) => ({
      runId: String(row.run_id),
      state: Number(row.state),
      dueAt: numberOf(row.due_at),
      owner: textOf(row.owner),
      pendingMessages: Number(row.pending_messages),
    })),
    inbox: inbox.map((row) => ({ runId: String(row.run_id), kind: String(row.kind), data: String(row.data) })),
    userRows: rows.map((row) => ({ runId: String(row.run_id), node: String(row.node), token: String(row.token) })),
    counters: counters.map((row) => Number(row.n)),
  };
}

function runOf(row: Row): RunRow {
  return {
    id: String(row.id),
    workflow: String(row.workflow),
    status: String(row.status),
    input: String(row.input),
    output: textOf(row.output),
    error: textOf(row.error),
    startKey: textOf(row.start_key),
    parentId: textOf(row.parent_id),
    parentNode: textOf(row.parent_node),
    parentIndex: numberOf(row.parent_index),
    createdAt: Number(row.created_at),
    startedAt: numberOf(row.started_at),
    finishedAt: numberOf(row.finished_at),
    waiting: textOf(row.waiting),
  };
}

type Tuple = [string, string | null, number | null, string | null, string | null];

/** A row holds one event, or a batch of them as a JSON array. */
function eventsOf(row: Row): LogEvent[] {
  const [seq, at] = [Number(row.seq), Number(row.at)];
  const tuples: Tuple[] =
    row.type === "batch"
      ? JSON.parse(String(row.data))
      : [[String(row.type), textOf(row.node), numberOf(row.attempt), textOf(row.outcome), textOf(row.data)]];
  return tuples.map(([type, node, attempt, outcome, data], index) => ({
    seq: seq + index,
    type,
    node,
    attempt,
    outcome,
    data: data === null ? {} : JSON.parse(data),
    at,
  }));
}

const numberOf = (value: unknown): number | null => (value === null || value === undefined ? null : Number(value));
const textOf = (value: unknown): string | null => (value === null || value === undefined ? null : String(value));
