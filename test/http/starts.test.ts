/** What a start answers besides the run, and what it refuses. */
import { job, workflow } from "pawl";
import { expect, test } from "vitest";
import { serve } from "./served-pawl.js";

const order = workflow("order", async () => "done");
const pack = job("pack", async () => {});

test("Location leads to the run, also behind a base path", async () => {
  const { url, post } = await serve({ registered: [order], jobs: [pack], basePath: "/pawl" });
  const starts = {
    "/pawl/api/v1/workflows/order/runs": {},
    "/api/v1/workflows/order/runs": {},
    "/pawl/api/v1/graphs": { name: "parcel", nodes: [{ name: "pack", job: "pack" }] },
  };
  for (const [path, body] of Object.entries(starts)) {
    const { status, headers, json } = await post(path, body);
    expect(status).toBe(201);
    const run = await fetch(new URL(headers.get("location") as string, url + path));
    expect(await run.json()).toMatchObject({ id: json.id });
  }
});

test("a graph takes both policies for nodes that fail", async () => {
  const { post } = await serve({ jobs: [pack] });
  const nodes = [{ name: "pack", job: "pack" }];
  for (const onNodeFailure of ["stop", "continue"])
    expect((await post("/api/v1/graphs", { name: "parcel", nodes, onNodeFailure })).status).toBe(201);
  expect((await post("/api/v1/graphs", { name: "parcel", nodes, onNodeFailure: "pause" })).status).toBe(400);
});

test("a batch refuses an idempotency key, which it could not keep", async () => {
  const { get, post } = await serve({ registered: [order] });
  const batch = await post("/api/v1/workflows/order/runs/batch", { inputs: [1, 2] }, { "idempotency-key": "k" });
  expect(batch).toMatchObject({ status: 400, json: { code: "BAD_REQUEST" } });
  expect((await get("/api/v1/runs")).json.runs).toEqual([]);
});

test("startBy is a duration or an instant with its zone, and the explanation has when the run expires", async () => {
  const { get, post } = await serve();
  await post("/api/v1/workflows/elsewhere", {});
  const path = "/api/v1/workflows/elsewhere/runs";
  const { json: soon } = await post(path, { startBy: "10m" });
  const { json: late } = await post(path, { startBy: "2999-01-01T00:00:00Z" });
  const explanation = (id: string) => get(`/api/v1/runs/${id}/explanation`);
  expect((await explanation(late.id)).json.expiresAt).toBe("2999-01-01T00:00:00.000Z");
  expect(Date.parse((await explanation(soon.id)).json.expiresAt)).toBeGreaterThan(Date.now());
  for (const startBy of ["2999-01-01T00:00:00", "soon", 0])
    expect((await post(path, { startBy })).status, String(startBy)).toBeGreaterThanOrEqual(400);
});

test("onConflict says what becomes of a start whose key was used before", async () => {
  const { get, post } = await serve();
  await post("/api/v1/workflows/elsewhere", {});
  const start = (onConflict: string, input: unknown) =>
    post("/api/v1/workflows/elsewhere/runs", { input, idempotencyKey: "k", onConflict });
  const first = await start("attach", 1);
  expect(first.status).toBe(201);
  expect(await start("attach", 1)).toMatchObject({ status: 200, json: { id: first.json.id, created: false } });
  expect(await start("fail", 1)).toMatchObject({ status: 409, json: { code: "ALREADY_ACTIVE", runId: first.json.id } });
  expect(await start("replace", 2)).toMatchObject({ status: 200, json: { id: first.json.id, replaced: true } });
  const queued = await start("queue", 3);
  expect(queued).toMatchObject({ status: 201, json: { created: true, startsAfter: first.json.id } });
  expect((await get(`/api/v1/runs/${queued.json.id}`)).json).toMatchObject({ startsAfter: first.json.id });
  expect((await get(`/api/v1/runs/${queued.json.id}/explanation`)).json).toMatchObject({ because: "queued" });
  expect(await start("cancelOther", 4)).toMatchObject({ status: 201, json: { created: true } });
  expect((await start("wait", 5)).status).toBe(400);
});
