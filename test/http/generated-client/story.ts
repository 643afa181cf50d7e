/**
 * A program of a user of the HTTP API, with a client that was generated from the OpenAPI document. The compiler checks its
 * paths, parameters, bodies and answers. It prints what it has seen.
 */
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Run = components["schemas"]["Run"];

const client = createClient<paths>({ baseUrl: process.argv[2] as string });
const seen: Record<string, unknown> = {};

/** The data of an answer that must have succeeded. */
function dataOf<Data>(answer: { data?: Data | undefined; error?: unknown; response: Response }): Data {
  if (answer.data === undefined) throw new Error(`${answer.response.status}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

async function untilStatus(id: string, status: Run["status"]): Promise<Run> {
  for (;;) {
    const run = dataOf(await client.GET("/api/v1/runs/{run}", { params: { path: { run: id } } }));
    if (run.status === status) return run;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const start = async (input: unknown, key?: string) =>
  client.POST("/api/v1/workflows/{workflow}/runs", {
    params: { path: { workflow: "order" }, header: key === undefined ? {} : { "Idempotency-Key": key } },
    body: { input, by: "ada", reason: "A story.", tags: ["story"] },
  });

const first = await start({ sku: "A-1" }, "cart-77");
const again = await start({ sku: "A-1" }, "cart-77");
seen.started = [first.response.status, first.data?.created, again.response.status, again.data?.created];
seen.sameRun = first.data?.id === again.data?.id;
seen.reused = (await start({ sku: "B-2" }, "cart-77")).error?.code;
const id = dataOf(first).id;
const path = { run: id };

const waiting = await untilStatus(id, "waiting");
seen.waitingFor = waiting.waitingFor.map(({ kind, names }) => `${kind} ${names?.join()}`);
const pending = await client.GET("/api/v1/runs/{run}/result", { params: { path, query: { timeoutMs: 0 } } });
seen.pending = [pending.response.status, pending.data?.status];

// Two people act on what they have seen: the second one is told what has changed.
const { lastEvent } = dataOf(await client.GET("/api/v1/runs/{run}/history", { params: { path } }));
const pause = (by: string) =>
  client.POST("/api/v1/runs/{run}/pause", { params: { path }, body: { by, reason: "Stop.", ifLastEvent: lastEvent } });
seen.paused = (await pause("ada")).data?.accepted;
const late = await pause("grace");
seen.late = [
  late.response.status,
  late.error?.code,
  late.error?.runStatus,
  late.error?.changes?.map(({ type, by }) => `${type} ${by ?? "–"}`),
];
const listed = dataOf(await client.GET("/api/v1/runs", { params: { query: { status: "paused", explain: true } } }));
seen.listed = listed.runs.map((run) => [run.id === id, run.pauseReason, run.explanation?.split(" ").length !== 0]);
seen.resumed = (
  await client.POST("/api/v1/runs/{run}/resume", { params: { path }, body: { by: "ada" } })
).data?.accepted;
const twice = await client.POST("/api/v1/runs/{run}/resume", { params: { path }, body: {} });
seen.notPaused = [twice.response.status, twice.error?.code];

const body = { name: "approved", payload: { by: "finance" }, key: "webhook-9" };
seen.signalled = (await client.POST("/api/v1/runs/{run}/signals", { params: { path }, body })).data?.accepted;
const result = dataOf(await client.GET("/api/v1/runs/{run}/result", { params: { path } }));
seen.result = result.status === "completed" && "output" in result ? result.output : null;
const { events } = dataOf(await client.GET("/api/v1/runs/{run}/history", { params: { path, query: { limit: 1000 } } }));
seen.history = events.map(({ type }) => type);

const second = dataOf(await start({ sku: "C-3" })).id;
await untilStatus(second, "waiting");
const cancel = { params: { path: { run: second } }, body: { reason: "Changed my mind." } };
seen.canceled = (await client.POST("/api/v1/runs/{run}/cancel", cancel)).data?.accepted;
seen.ended = (await untilStatus(second, "canceled")).error;
seen.unknown = (await client.GET("/api/v1/runs/{run}", { params: { path: { run: "nobody" } } })).error?.code;

console.log(JSON.stringify(seen));
