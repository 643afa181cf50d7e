/** A request for each route of the API, for tests that walk the whole table. */
import type { Route } from "../../src/http/route.js";
import { allRoutes } from "../../src/http/routes.js";
import type { EventfulWorld } from "./eventful-world.js";

export interface RouteCase {
  readonly path: string;
  readonly body?: unknown;
}

type Runs = EventfulWorld["runs"];

/** By operation. A route without an entry here makes the tests fail that walk the table. */
const cases: Readonly<Record<string, (runs: Runs) => RouteCase>> = {
  live: () => ({ path: "/live" }),
  ready: () => ({ path: "/ready" }),
  getOpenApi: () => ({ path: "/api/openapi.json" }),
  getMe: () => ({ path: "/api/v1/me" }),
  startRun: () => ({ path: "/api/v1/workflows/order/runs", body: { input: 1 } }),
  startRuns: () => ({ path: "/api/v1/workflows/order/runs/batch", body: { inputs: [1, 2] } }),
  buildGraph: () => ({ path: "/api/v1/graphs", body: { name: "g", nodes: [{ name: "a", job: "ImportRow" }] } }),
  createWorkflow: () => ({ path: "/api/v1/workflows/made-by-hand", body: {} }),
  listRuns: () => ({ path: "/api/v1/runs?explain=1&maxPayload=1000000" }),
  countRuns: () => ({ path: "/api/v1/counts" }),
  listErrors: () => ({ path: "/api/v1/errors" }),
  getFigures: () => ({ path: "/api/v1/figures" }),
  getWorkflowFigures: () => ({ path: "/api/v1/figures/workflows" }),
  watchChanges: () => ({ path: "/api/v1/changes" }),
  getRun: ({ paused }) => ({ path: `/api/v1/runs/${paused}` }),
  getRunStatus: ({ paused }) => ({ path: `/api/v1/runs/${paused}/status` }),
  getRunResult: ({ paused }) => ({ path: `/api/v1/runs/${paused}/result?timeoutMs=0` }),
  getRunHistory: ({ paused }) => ({ path: `/api/v1/runs/${paused}/history` }),
  watchRun: ({ paused }) => ({ path: `/api/v1/runs/${paused}/events` }),
  getRunExecutions: ({ paused }) => ({ path: `/api/v1/runs/${paused}/executions` }),
  getRunStep: ({ paused }) => ({ path: `/api/v1/runs/${paused}/step?node=reserve` }),
  getRunRetry: ({ paused }) => ({ path: `/api/v1/runs/${paused}/retry` }),
  getRunTimeline: ({ paused }) => ({ path: `/api/v1/runs/${paused}/timeline` }),
  getRunWaterfall: ({ paused }) => ({ path: `/api/v1/runs/${paused}/waterfall` }),
  getRunNodes: ({ paused }) => ({ path: `/api/v1/runs/${paused}/nodes` }),
  getRunGraph: ({ paused }) => ({ path: `/api/v1/runs/${paused}/graph` }),
  getRunProgress: ({ paused }) => ({ path: `/api/v1/runs/${paused}/progress` }),
  explainRun: ({ paused }) => ({ path: `/api/v1/runs/${paused}/explanation` }),
  getRunState: ({ paused }) => ({ path: `/api/v1/runs/${paused}/state?event=2` }),
  signalRun: ({ waiting }) => ({ path: `/api/v1/runs/${waiting}/signals`, body: { name: "other" } }),
  signalFoundRun: () => ({
    path: "/api/v1/signals",
    body: { workflow: "order", idempotencyKey: "no such key", name: "other" },
  }),
  pauseRun: ({ waiting }) => ({ path: `/api/v1/runs/${waiting}/pause`, body: {} }),
  resumeRun: ({ paused }) => ({ path: `/api/v1/runs/${paused}/resume`, body: {} }),
  resumeRunAt: ({ chain }) => ({ path: `/api/v1/runs/${chain}/resume-at`, body: { step: "first" } }),
  cancelRun: ({ waiting }) => ({ path: `/api/v1/runs/${waiting}/cancel`, body: {} }),
  skipStep: ({ stuck }) => ({ path: `/api/v1/runs/${stuck}/skip`, body: {} }),
  reattemptNode: ({ failedGraph }) => ({ path: `/api/v1/runs/${failedGraph}/reattempt`, body: { node: "import" } }),
  startBuiltRun: ({ built }) => ({ path: `/api/v1/runs/${built}/start`, body: {} }),
  importGraph: ({ failedGraph }) => ({
    path: `/api/v1/runs/${failedGraph}/graph`,
    body: { graph: { version: 1, nodes: {} } },
  }),
  retryRun: ({ failed }) => ({ path: `/api/v1/runs/${failed}/retry`, body: {} }),
  listWorkflows: () => ({ path: "/api/v1/workflows" }),
  getMetrics: () => ({ path: "/api/v1/workflows/order/metrics" }),
  listWorkers: () => ({ path: "/api/v1/workers" }),
  listQueues: () => ({ path: "/api/v1/queues" }),
  pauseQueue: () => ({ path: "/api/v1/queues/orders/pause", body: {} }),
  resumeQueue: () => ({ path: "/api/v1/queues/orders/resume", body: {} }),
  listSchedules: () => ({ path: "/api/v1/schedules" }),
  getSchedule: () => ({ path: "/api/v1/schedules/reports" }),
  putSchedule: () => ({ path: "/api/v1/schedules/new", body: { workflow: "order", cron: "0 6 * * MON" } }),
  getNextInstants: () => ({ path: "/api/v1/schedules/reports/next" }),
  listOccurrences: () => ({ path: "/api/v1/schedules/broken/occurrences" }),
  pauseSchedule: () => ({ path: "/api/v1/schedules/reports/pause", body: {} }),
  resumeSchedule: () => ({ path: "/api/v1/schedules/reports/resume", body: {} }),
  triggerSchedule: () => ({ path: "/api/v1/schedules/reports/trigger", body: {} }),
  backfillSchedule: () => ({
    path: "/api/v1/schedules/ended/backfill",
    body: { from: "2020-01-01T00:00:00Z", dryRun: true },
  }),
  deleteSchedule: () => ({ path: "/api/v1/schedules/reports" }),
  listLimits: () => ({ path: "/api/v1/limits" }),
  getLimit: () => ({ path: "/api/v1/limits/api" }),
  overrideLimit: () => ({ path: "/api/v1/limits/api/override", body: { concurrency: 3 } }),
  clearLimitOverride: () => ({ path: "/api/v1/limits/api/override" }),
  getDatabase: () => ({ path: "/api/v1/database" }),
  prune: () => ({ path: "/api/v1/prune", body: { olderThan: "1 minute" } }),
  verify: () => ({ path: "/api/v1/verify", body: {} }),
};

/** Every route with its request. @throws if a route has no case, or a case no route */
export function routeCases(runs: Runs): readonly (RouteCase & { readonly route: Route })[] {
  const operations = allRoutes.map(({ operationId }) => operationId);
  const missing = operations.filter((operation) => !Object.hasOwn(cases, operation));
  const unknown = Object.keys(cases).filter((operation) => !operations.includes(operation));
  if (missing.length + unknown.length > 0)
    throw new Error(
      `Add a case to route-cases.ts for ${missing.join(", ") || "nothing"}; remove ${unknown.join(", ") || "none"}.`,
    );
  return allRoutes.map((route) => ({ route, ...(cases[route.operationId] as (runs: Runs) => RouteCase)(runs) }));
}
