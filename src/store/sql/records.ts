/** Decodes the rows of the SQL tables. Drivers return BIGINT and booleans in different types; records have one. */

import { dueAtOf } from "../../core/limits/order.js";
import { baseRouteOf, isClassRoute } from "../../core/naming/route.js";
import type {
  Damage,
  ExecutingCount,
  InboxRow,
  Route,
  RunRecord,
  RunStatus,
  TaskRecord,
  WorkerLoad,
  WorkerRecord,
  WorkflowRecord,
} from "../contract/store.js";
import type { EventRow } from "../shared/event-rows.js";
import type { SqlRow } from "./dialect.js";

/** The numbers in the column `pawl_tasks.state`. */
export const taskState = { parked: 0, ready: 1, owned: 2 } as const;

export const taskStateNames = ["parked", "ready", "owned"] as const;

/**
 * The columns that `decodeRun` needs, selected from `runs r`. The status "running" is not stored in the run's row but
 * derived from its task. A subquery reads the task of each run: a join could be planned to begin with all tasks.
 */
export const runColumns = (tasks: string): string => `${runColumnsWith(openTaskStateSql(tasks))}, r.started_by`;

/** A run that has ended has no task, so none is looked up. */
export const openTaskStateSql = (tasks: string): string =>
  `CASE WHEN r.finished_at IS NULL THEN ${taskStateSubquery(tasks)} END`;

export const taskStateSubquery = (tasks: string): string => `(SELECT t.state FROM ${tasks} t WHERE t.run_id = r.id)`;

/** The columns that claims need, for callers that know the state of the task already or have an expression for it. */
export const runColumnsWith = (state: string | number): string => `${runTableColumns}, ${state} AS task_state`;

const runTableColumns = [
  "r.id, r.workflow, r.version, r.queue, r.priority, r.status, r.input, r.output, r.error, r.waiting",
  "r.hero_type, r.hero_id, r.start_key, r.tags, r.parent_id, r.parent_node, r.parent_index, r.parent_attempt",
  "r.created_at, r.started_at, r.finished_at, r.schedule",
].join(", ");

/** Marks a damaged row instead of throwing, because one damaged row must not make a whole list or claim fail. */
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
    ...(typeof row.schedule === "string" ? { schedule: row.schedule } : {}),
    // Claims do not read this column.
    ...(typeof row.started_by === "string" ? { startedBy: row.started_by } : {}),
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

/** These columns are checked because SQLite also stores text in a numeric column. */
const numberColumns = [
  "priority",
  "parent_index",
  "parent_attempt",
  "created_at",
  "started_at",
  "finished_at",
] as const;

function findRunDamage(row: SqlRow): Damage | null {
  if (!runStatuses.has(row.status)) return { column: "status", problem: `"${row.status}" is not a status` };
  for (const column of numberColumns) {
    if (Number.isNaN(Number(row[column] ?? 0))) return { column, problem: `"${row[column]}" is not a number` };
  }
  return findTagsDamage(row.tags as string | null);
}

export function decodeTask(row: SqlRow): TaskRecord {
  return {
    runId: row.run_id as string,
    ...decodeRoute(row.workflow as string),
    state: taskStateNames[Number(row.state)] ?? "parked",
    dueAt: decodeDueAt(row.due_at),
    owner: row.owner as string | null,
    epoch: numberOrNull(row.epoch),
    deliveries: Number(row.deliveries),
    pendingMessages: Number(row.pending_messages),
  };
}

/** The columns of a task that waits in a class are those of its class; see core/limits. */
export function decodeRoute(route: string): { readonly route: string; readonly classId?: string } {
  return isClassRoute(route) ? { route: baseRouteOf(route), classId: route } : { route };
}

export const decodeDueAt = (dueAt: unknown): number | null =>
  dueAt === null || dueAt === undefined ? null : dueAtOf(Number(dueAt));

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
  const executing = readExecuting(row.executing as string | null);
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
    executing: executing ?? [],
    loopLagMs: row.loop_lag_ms === null ? null : Number(row.loop_lag_ms),
    ...(row.schedule_set === null ? {} : { scheduleSet: row.schedule_set as string }),
    ...(executing === null ? { damage: { column: "executing", problem: "it is not a list of counts" } } : {}),
    ...(routes === null ? { damage: { column: "routes", problem: "it is not a list of routes" } } : {}),
  };
}

/** The values of the columns `executing` and `loop_lag_ms`; null leaves a column as it is, see `Store.heartbeat`. */
export type LoadColumns = readonly [executing: string | null, loopLagMs: number | null];

export const encodeLoad = (load: WorkerLoad | undefined): LoadColumns =>
  load === undefined ? [null, null] : [JSON.stringify(load.executing), load.loopLagMs];

function readExecuting(text: string | null): readonly ExecutingCount[] | null {
  if (text === null) return [];
  const isCount = (value: unknown) =>
    typeof value === "object" && value !== null && "count" in value && typeof value.count === "number";
  const counts = tryParseJson(text);
  return Array.isArray(counts) && counts.every(isCount) ? counts : null;
}

function readRoutes(text: string): readonly Route[] | null {
  const isRoute = (value: unknown) =>
    typeof value === "object" && value !== null && "workflow" in value && typeof value.workflow === "string";
  const routes = tryParseJson(text);
  return Array.isArray(routes) && routes.every(isRoute) ? routes : null;
}

/** The columns that `decodeWorkflow` needs, selected from `workflows w`. */
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

/** An empty list is stored as NULL: most runs have no tags, and their rows stay short. */
export const encodeTags = (tags: readonly string[]): string | null => (tags.length === 0 ? null : JSON.stringify(tags));

const noTags: readonly string[] = [];

/** Returns an empty list when the tags cannot be read; `findTagsDamage` reports such tags. */
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

/** A database returns the rows of a list of ids in any order. */
export function sortByIds<T>(ids: readonly string[], items: readonly T[], idOf: (item: T) => string): T[] {
  if (ids.length === 1) return items.slice();
  const byId = new Map(items.map((item) => [idOf(item), item]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}
