/** Rows of the SQL tables, decoded. Drivers differ in what they make of BIGINT and booleans; here that ends. */
import type { EventRow } from "../rows.js";
import type { InboxRow, RunRecord, RunStatus, TaskRecord, WorkerRecord, WorkflowRecord } from "../store.js";
import type { SqlRow } from "./dialect.js";

/** `pawl_tasks.state`. */
export const taskState = { parked: 0, ready: 1, owned: 2 } as const;

const stateNames = ["parked", "ready", "owned"] as const;

/**
 * The columns of a run as `decodeRun` wants them, from `runs r`. "running" is in no column of a run, it is derived from
 * its task. That is looked up run by run: a join could be planned the other way round, beginning with all tasks.
 */
export const runColumns = (tasks: string): string => runColumnsWith(taskStateOf(tasks));

export const taskStateOf = (tasks: string): string => `(SELECT t.state FROM ${tasks} t WHERE t.run_id = r.id)`;

/** The same when the state of the task is at hand. */
export const runColumnsWith = (state: string | number): string => `${ownColumns}, ${state} AS task_state`;

const ownColumns = [
  "r.id, r.workflow, r.version, r.queue, r.priority, r.status, r.input, r.output, r.error, r.waiting",
  "r.hero_type, r.hero_id, r.start_key, r.tags, r.parent_id, r.parent_node, r.parent_index",
  "r.created_at, r.started_at, r.finished_at",
].join(", ");

export function decodeRun(row: SqlRow): RunRecord {
  return {
    id: row.id as string,
    workflow: row.workflow as string,
    version: row.version as string,
    queue: row.queue as string,
    priority: Number(row.priority),
    input: row.input as string,
    heroType: row.hero_type as string | null,
    heroId: row.hero_id as string | null,
    tags: decodeTags(row.tags as string | null),
    startKey: row.start_key as string | null,
    parentId: row.parent_id as string | null,
    parentNode: row.parent_node as string | null,
    parentIndex: numberOrNull(row.parent_index),
    status: isOwned(row.task_state) ? "running" : (row.status as RunStatus),
    output: row.output as string | null,
    error: row.error as string | null,
    waiting: row.waiting as string | null,
    createdAt: Number(row.created_at),
    startedAt: numberOrNull(row.started_at),
    finishedAt: numberOrNull(row.finished_at),
  };
}

export function decodeTask(row: SqlRow): TaskRecord {
  return {
    runId: row.run_id as string,
    route: row.workflow as string,
    state: stateNames[Number(row.state)] ?? "parked",
    dueAt: numberOrNull(row.due_at),
    owner: row.owner as string | null,
    epoch: numberOrNull(row.epoch),
    deliveries: Number(row.deliveries),
    mail: Number(row.mail),
  };
}

export function decodeEventRow(row: SqlRow): EventRow & { readonly seq: number; readonly at: number } {
  return {
    seq: Number(row.seq),
    span: Number(row.span),
    type: row.type as string,
    node: row.node as string | null,
    attempt: numberOrNull(row.attempt),
    outcome: row.outcome as string | null,
    data: row.data as string | null,
    at: Number(row.at),
  };
}

export function decodeInboxRow(row: SqlRow): InboxRow {
  return { id: Number(row.id), kind: row.kind as string, data: row.data as string, at: Number(row.at) };
}

export function decodeWorker(row: SqlRow): WorkerRecord {
  return {
    id: row.id as string,
    name: row.name as string,
    host: row.host as string,
    pid: Number(row.pid),
    port: row.port === null ? null : Number(row.port),
    routes: JSON.parse(row.routes as string),
    leaseMs: Number(row.lease_ms),
    epoch: Number(row.epoch),
    live: Number(row.live) === 1,
    startedAt: Number(row.started_at),
    beatAt: Number(row.beat_at),
    owned: Number(row.owned ?? 0),
  };
}

/** From `workflows w`. */
export const workflowColumns = "w.name, w.queue, w.version, w.signature, w.graph, w.created_at";

export function decodeWorkflow(row: SqlRow): WorkflowRecord {
  return {
    name: row.name as string,
    queue: row.queue as string,
    version: row.version as string,
    signature: row.signature as string | null,
    graph: row.graph as string | null,
    createdAt: Number(row.created_at),
  };
}

/** No tags are NULL: most runs have none, and the row stays short. */
export const encodeTags = (tags: readonly string[]): string | null => (tags.length === 0 ? null : JSON.stringify(tags));

const noTags: readonly string[] = [];
export const decodeTags = (text: string | null): readonly string[] => (text === null ? noTags : JSON.parse(text));

export const isOwned = (state: unknown) => state !== null && state !== undefined && Number(state) === taskState.owned;
export const numberOrNull = (value: unknown) => (value === null || value === undefined ? null : Number(value));
