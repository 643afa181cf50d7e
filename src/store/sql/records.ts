/** Rows of the SQL tables, decoded. Drivers differ in what they make of BIGINT and booleans; here that ends. */

import type {
  Damage,
  InboxRow,
  Route,
  RunRecord,
  RunStatus,
  TaskRecord,
  WorkerRecord,
  WorkflowRecord,
} from "../contract/store.js";
import type { EventRow } from "../shared/event-rows.js";
import type { SqlRow } from "./dialect.js";

/** `pawl_tasks.state`. */
export const taskState = { parked: 0, ready: 1, owned: 2 } as const;

export const taskStateNames = ["parked", "ready", "owned"] as const;

/**
 * The columns of a run as `decodeRun` wants them, from `runs r`. "running" is in no column of a run, it is derived from
 * its task. That is looked up run by run: a join could be planned the other way round, beginning with all tasks.
 */
export const runColumns = (tasks: string): string => runColumnsWith(taskStateSubquery(tasks));

export const taskStateSubquery = (tasks: string): string => `(SELECT t.state FROM ${tasks} t WHERE t.run_id = r.id)`;

/** The same when the state of the task is at hand. */
export const runColumnsWith = (state: string | number): string => `${runTableColumns}, ${state} AS task_state`;

const runTableColumns = [
  "r.id, r.workflow, r.version, r.queue, r.priority, r.status, r.input, r.output, r.error, r.waiting",
  "r.hero_type, r.hero_id, r.start_key, r.tags, r.parent_id, r.parent_node, r.parent_index, r.parent_attempt",
  "r.created_at, r.started_at, r.finished_at",
].join(", ");

/** A row that is damaged is marked, never thrown at: it may stand in the middle of a list, or of a claim. */
export function decodeRun(row: SqlRow): RunRecord {
  const damage = findRunDamage(row);
  const run = decodeRunFields(row);
  return damage === null ? run : { ...run, damage };
}

function decodeRunFields(row: SqlRow): RunRecord {
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
    parentAttempt: numberOrNull(row.parent_attempt),
    status: isOwned(row.task_state) ? "running" : (row.status as RunStatus),
    output: row.output as string | null,
    error: row.error as string | null,
    waiting: row.waiting as string | null,
    createdAt: Number(row.created_at),
    startedAt: numberOrNull(row.started_at),
    finishedAt: numberOrNull(row.finished_at),
  };
}

const runStatuses = new Set<unknown>([
  "pending",
  "running",
  "waiting",
  "paused",
  "completed",
  "failed",
  "canceled",
] satisfies RunStatus[]);

/** SQLite keeps text in a column of numbers if that is what it was given. */
const numberColumns = [
  "priority",
  "parent_index",
  "parent_attempt",
  "created_at",
  "started_at",
  "finished_at",
] as const;

function findRunDamage(row: SqlRow): Damage | null {
  if (!runStatuses.has(row.status)) return { column: "status", problem: `"${row.status}" is no status` };
  for (const column of numberColumns) {
    if (Number.isNaN(Number(row[column] ?? 0))) return { column, problem: `"${row[column]}" is no number` };
  }
  return findTagsDamage(row.tags as string | null);
}

export function decodeTask(row: SqlRow): TaskRecord {
  return {
    runId: row.run_id as string,
    route: row.workflow as string,
    state: taskStateNames[Number(row.state)] ?? "parked",
    dueAt: numberOrNull(row.due_at),
    owner: row.owner as string | null,
    epoch: numberOrNull(row.epoch),
    deliveries: Number(row.deliveries),
    pendingMessages: Number(row.pending_messages),
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
  const routes = readRoutes(row.routes as string);
  return {
    id: row.id as string,
    name: row.name as string,
    host: row.host as string,
    pid: Number(row.pid),
    port: row.port === null ? null : Number(row.port),
    routes: routes ?? [],
    leaseMs: Number(row.lease_ms),
    epoch: Number(row.epoch),
    live: Number(row.live) === 1,
    startedAt: Number(row.started_at),
    heartbeatAt: Number(row.heartbeat_at),
    ownedTaskCount: Number(row.owned ?? 0),
    ...(routes === null ? { damage: { column: "routes", problem: "it is not a list of routes" } } : {}),
  };
}

function readRoutes(text: string): readonly Route[] | null {
  const isRoute = (value: unknown) =>
    typeof value === "object" && value !== null && "workflow" in value && typeof value.workflow === "string";
  const routes = tryParseJson(text);
  return Array.isArray(routes) && routes.every(isRoute) ? routes : null;
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

/** None when they cannot be read; `damageOfTags` says so. */
export const decodeTags = (text: string | null): readonly string[] =>
  text === null ? noTags : (readTags(text) ?? noTags);

function readTags(text: string): readonly string[] | null {
  const tags = tryParseJson(text);
  return Array.isArray(tags) && tags.every((tag) => typeof tag === "string") ? tags : null;
}

const findTagsDamage = (text: string | null): Damage | null =>
  text === null || readTags(text) !== null ? null : { column: "tags", problem: "it is not a list of texts" };

function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const isOwned = (state: unknown) => state !== null && state !== undefined && Number(state) === taskState.owned;
export const numberOrNull = (value: unknown) => (value === null || value === undefined ? null : Number(value));
