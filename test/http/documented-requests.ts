/** Requests that together bring about every status of every route. */
import { job, schedule } from "pawl";
import type { HttpOptions } from "pawl/http";
import type { Route } from "../../src/http/route.js";
import type { EventfulWorld } from "./eventful-world.js";
import { routeCases } from "./route-cases.js";

export interface DocumentedRequest {
  readonly route: Route;
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly options?: HttpOptions;
}

type Extra = readonly [path: string, body?: unknown, headers?: Record<string, string>];

const noRun = "00000000-0000-7000-8000-000000000000";
const large = "x".repeat(1_200_000);
const hero = { type: "User", id: "7" };

/** A newer release of the application does not contain the schedule `declared` any more. */
async function retireDeclared({ pawl }: EventfulWorld): Promise<void> {
  const other = schedule("other", { workflow: "order", at: ["2100-01-01T00:00Z"] });
  const worker = pawl.worker({ workflows: [], jobs: [job("Unused", async () => {})], schedules: [other] });
  await worker.start();
  await worker.stop();
}

/** By operation: what its statuses need besides its usual request. */
const extras: Readonly<Record<string, (world: EventfulWorld) => readonly Extra[] | Promise<readonly Extra[]>>> = {
  startRun: () => [
    [
      "/api/v1/workflows/order/runs",
      { input: 1, idempotencyKey: "k", tags: ["a"], priority: 3, by: "ada", reason: "so" },
    ],
    ["/api/v1/workflows/order/runs", { input: 1 }, { "idempotency-key": "k" }],
    ["/api/v1/workflows/order/runs", { input: 2, idempotencyKey: "k" }],
    ["/api/v1/workflows/order/runs", { idempotencyKey: "a" }, { "idempotency-key": "b" }],
    ["/api/v1/workflows/Chain/runs", { input: { card: "1" }, hero }],
    ["/api/v1/workflows/Chain/runs", { input: { card: "1" }, hero }],
    ["/api/v1/workflows/nobody/runs", {}],
    ["/api/v1/workflows/order/runs", { input: large }],
    ["/api/v1/workflows/order/runs", { delay: "1 day", startAt: "2030-01-01T00:00:00Z" }],
    ["/api/v1/workflows/order/runs", { startAt: 1_900_000_000_000 }],
  ],
  startRuns: () => [
    ["/api/v1/workflows/nobody/runs/batch", { inputs: [1] }],
    ["/api/v1/workflows/order/runs/batch", { inputs: [] }],
    ["/api/v1/workflows/order/runs/batch", { inputs: [1], allowMultiple: true, delay: "1 day" }],
    ["/api/v1/workflows/order/runs/batch", { inputs: [large] }],
  ],
  buildGraph: () => {
    const nodes = [{ name: "a", job: "ImportRow" }];
    return [
      [
        "/api/v1/graphs",
        { name: "h", nodes, idempotencyKey: "g", concurrency: 2, onNodeFailure: "continue", start: false },
      ],
      [
        "/api/v1/graphs",
        { name: "h", nodes, idempotencyKey: "g", concurrency: 2, onNodeFailure: "continue", start: false },
      ],
      [
        "/api/v1/graphs",
        { name: "h", nodes: [...nodes, { name: "b", job: "ImportRow", dependsOn: null }], idempotencyKey: "g" },
      ],
      ["/api/v1/graphs", { name: "i", nodes, onNodeFailure: "stop", hero }],
      ["/api/v1/graphs", { name: "i", nodes, hero }],
      ["/api/v1/graphs", { name: "j", nodes: [{ name: "a", job: "x", dependsOn: ["a"] }] }],
      ["/api/v1/graphs", { name: "j", nodes: [] }],
      ["/api/v1/graphs", { name: "j", nodes: [{ name: "a", job: "ImportRow", args: large }] }],
      ["/api/v1/graphs", { name: "order", nodes }],
    ];
  },
  listRuns: ({ runs: { parent } }) => [
    ["/api/v1/runs?status=paused&explain=1&limit=1"],
    [`/api/v1/runs?parentId=${parent}&plain=1`],
    ["/api/v1/runs?parentId=none&active=0&maxPayload=0"],
    ["/api/v1/runs?limit=1000&createdAfter=2020-01-01&createdBefore=4000000000000"],
    ["/api/v1/runs?heroType=User&heroId=7"],
  ],
  getFigures: () => [["/api/v1/figures?workflow=order"], ["/api/v1/figures?from=2020-01-01&to=2010-01-01"]],
  getWorkflowFigures: () => [
    ["/api/v1/figures/workflows?from=2026-01-31T00:00:00Z&to=2026-01-31T12:00:00Z"],
    ["/api/v1/figures/workflows?from=2020-01-01&to=2010-01-01"],
  ],
  getMetrics: () => [["/api/v1/workflows/nobody/metrics"], ["/api/v1/workflows/failing/metrics?since=0"]],
  getRunWaterfall: ({ runs: { paused, completed } }) => [
    [`/api/v1/runs/${paused}/waterfall?after=1&limit=2`],
    [`/api/v1/runs/${completed}/waterfall?after=0&limit=3`],
    [`/api/v1/runs/${completed}/waterfall?after=9999`],
    [`/api/v1/runs/${completed}/waterfall?expand=no%20such%20group`],
  ],
  signalFoundRun: async ({ pawl }) => {
    await pawl.workflow("order").trigger(1, { idempotencyKey: "k" });
    for (let times = 0; times < 2; times += 1)
      await pawl.workflow("Chain").trigger({ card: "1" }, { hero, allowMultiple: true });
    return [
      ["/api/v1/signals", { workflow: "order", idempotencyKey: "k", name: "other", payload: { a: 1 }, key: "1" }],
      ["/api/v1/signals", { workflow: "order", name: "other" }],
      ["/api/v1/signals", { workflow: "Chain", hero, name: "other" }],
    ];
  },
  signalRun: ({ runs: { waiting } }) => [[`/api/v1/runs/${waiting}/signals`, { name: "other", payload: large }]],
  resumeRun: ({ runs: { paused, stuck } }) => [
    [`/api/v1/runs/${stuck}/resume`, { output: large }],
    [`/api/v1/runs/${stuck}/resume`, { output: { a: 1 }, by: "ada" }],
    [`/api/v1/runs/${paused}/resume`, { accept: ["a"], renamed: { a: "b" }, ifLastEvent: 1 }],
  ],
  importGraph: async ({ pawl, runs: { failedGraph, parent } }) => {
    const graph = JSON.parse(await pawl.run(failedGraph).exportDag());
    return [
      [`/api/v1/runs/${failedGraph}/graph`, { graph: 1 }],
      [`/api/v1/runs/${failedGraph}/graph`, { graph, by: "ada" }],
      [`/api/v1/runs/${parent}/graph`, { graph }],
    ];
  },
  pauseQueue: () => [["/api/v1/queues/nobody/pause", {}]],
  resumeQueue: () => [["/api/v1/queues/nobody/resume", {}]],
  getNextInstants: () => [
    ["/api/v1/schedules/reports/next?count=3&from=2100-10-30T00:00:00Z"],
    ["/api/v1/schedules/reports/next?from=2100-10-30T00:00:00"],
    ["/api/v1/schedules/broken/next"],
    ["/api/v1/schedules/none/next"],
  ],
  listSchedules: () => [
    ["/api/v1/schedules?limit=1&plain=1"],
    ["/api/v1/schedules?app=default&maxPayload=3"],
    ["/api/v1/schedules?cursor=none"],
  ],
  getSchedule: () => [["/api/v1/schedules/none"], ["/api/v1/schedules/broken"], ["/api/v1/schedules/declared"]],
  listOccurrences: () => [["/api/v1/schedules/broken/occurrences?limit=1"], ["/api/v1/schedules/none/occurrences"]],
  putSchedule: () => [
    ["/api/v1/schedules/declared", { workflow: "order", every: "1h" }],
    [
      "/api/v1/schedules/new",
      { workflow: "order", every: "1h", offset: 60_000, jitter: "1 minute", hero, tags: ["a"] },
    ],
    ["/api/v1/schedules/new", { workflow: "order", at: ["2100-01-01"] }],
    ["/api/v1/schedules/new", { workflow: "order", at: ["2100-01-01T00:00Z"], except: ["2100-01-02"], by: "ada" }],
    [
      "/api/v1/schedules/new",
      { workflow: "order", every: "1h", catchUp: { mode: "all", within: "1 day" }, maxRuns: 2 },
    ],
    ["/api/v1/schedules/new", { workflow: "order", every: "1h", input: large }],
  ],
  deleteSchedule: () => [["/api/v1/schedules/declared"], ["/api/v1/schedules/none?by=ada&reason=unused"]],
  pauseSchedule: () => [
    ["/api/v1/schedules/reports/pause", { until: "1 day", by: "ada" }],
    ["/api/v1/schedules/reports/pause", { until: "2100-01-01T00:00:00Z" }],
    ["/api/v1/schedules/reports/pause", { until: "2100-01-01T00:00:00" }],
    ["/api/v1/schedules/none/pause", {}],
    ["/api/v1/schedules/ended/pause", {}],
  ],
  resumeSchedule: () => [
    ["/api/v1/schedules/none/resume", {}],
    ["/api/v1/schedules/ended/resume", { by: "ada" }],
  ],
  triggerSchedule: async (world) => {
    await retireDeclared(world);
    return [
      ["/api/v1/schedules/none/trigger", {}],
      ["/api/v1/schedules/broken/trigger", { force: true, by: "ada" }],
      ["/api/v1/schedules/declared/trigger", {}],
    ];
  },
  backfillSchedule: async (world) => {
    await retireDeclared(world);
    const from = "2020-01-01T00:00:00Z";
    return [
      ["/api/v1/schedules/none/backfill", { from }],
      ["/api/v1/schedules/ended/backfill", { from, to: "2020-01-03T00:00:00Z", by: "ada" }],
      ["/api/v1/schedules/ended/backfill", { from, to: "2019-01-03T00:00:00Z" }],
      ["/api/v1/schedules/declared/backfill", { from }],
    ];
  },
  getLimit: () => [["/api/v1/limits/api?key=&limit=1"], ["/api/v1/limits/api?cursor=none"], ["/api/v1/limits/none"]],
  overrideLimit: () => [
    ["/api/v1/limits/api/override", { rate: { limit: 5, per: "1m", burst: 1 }, until: "1 day", by: "ada" }],
    ["/api/v1/limits/api/override", { concurrency: null, rate: null, until: "2100-01-01T00:00:00Z" }],
    ["/api/v1/limits/api/override", {}],
    ["/api/v1/limits/none/override", { concurrency: 1 }],
  ],
  clearLimitOverride: () => [["/api/v1/limits/api/override?by=ada&reason=over"], ["/api/v1/limits/none/override"]],
  prune: () => [
    ["/api/v1/prune", { olderThan: "1 day", workflow: "order", dryRun: true, limit: 1 }],
    ["/api/v1/prune", { olderThan: "soon" }],
  ],
  verify: ({ runs: { failed } }) => [
    ["/api/v1/verify", { run: failed, by: "ada", reason: "after the restore" }],
    ["/api/v1/verify", { run: noRun }],
    ["/api/v1/verify", { run: "nobody" }],
  ],
};

/** The requests for one route: as it should be, for every run, and with the mistakes that any request may have. */
export async function documentedRequests(route: Route, world: EventfulWorld): Promise<DocumentedRequest[]> {
  const { runs } = world;
  const { method, operationId } = route;
  const { path, body } = routeCases(runs).find((one) => one.route === route) as { path: string; body?: unknown };
  const more = ((await extras[operationId]?.(world)) ?? []).map(([extraPath, extraBody, headers = {}]) => ({
    route,
    method,
    path: extraPath,
    body: extraBody,
    headers,
  }));
  const ids = Object.values(runs);
  const own = ids.find((id) => path.includes(id));
  const others =
    own === undefined
      ? []
      : [...ids, noRun, "nobody"].map((id) => ({ route, method, path: path.replace(own, id), body }));
  return [{ route, method, path, body }, ...more, ...others, ...mistakes(route, path, body)];
}

function mistakes(route: Route, path: string, body: unknown): DocumentedRequest[] {
  const { method } = route;
  const request = { route, method, path, body };
  const anyMistake: DocumentedRequest[] = [
    { route, method: "PATCH", path, body: {} },
    { ...request, path: `${path}${path.includes("?") ? "&" : "?"}nothing=1` },
    { ...request, headers: { origin: "https://evil.example.com" } },
    { ...request, options: { authorize: () => null } },
    { ...request, options: { authorize: () => ({ access: "nothing" as never }) } },
  ];
  if (method === "GET") return anyMistake;
  return [
    ...anyMistake,
    { ...request, body: { nothing: 1 } },
    { ...request, body: "{" },
    { ...request, headers: { "content-type": "text/plain" } },
    { ...request, headers: { "content-length": "99999999" } },
  ];
}
