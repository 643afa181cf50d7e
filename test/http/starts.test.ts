/** What a start answers besides the run, and what it refuses. */
import { job, workflow } from "pawl";
import { expect, test } from "vitest";
import { serve } from "./served-pawl.js";

const order = workflow("order", async () => "done");
const sized = { batch: { key: "input.user", size: 2, within: "1h" } };
const mail = workflow("mail", sized, async (_ctx, mails: { user: string }[]) => mails.map(({ user }) => `to ${user}`));
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

test("a debounced start is merged with the one before it, whether the server has the code or only the name", async () => {
  for (const options of [{ workflows: [order] }, {}]) {
    const { get, post, pawl } = await serve(options);
    await pawl.createWorkflow("order");
    const begin = (input: unknown, keep = "last") =>
      post("/api/v1/workflows/order/runs", { input, debounce: { key: "d1", quiet: "1h", keep } });
    const first = await begin("a");
    expect(first).toMatchObject({ status: 201, json: { created: true, merged: false } });
    const second = await begin("b");
    expect(second).toMatchObject({ status: 200, json: { id: first.json.id, created: false, merged: true } });
    expect((await get(`/api/v1/runs/${first.json.id}`)).json).toMatchObject({
      status: "pending",
      input: "b",
      gathered: { by: "debounce", key: "d1", starts: 2, isOpen: true, position: null },
    });
    expect((await begin("c", "most")).status).toBe(400);
    expect(await post("/api/v1/workflows/order/runs", { debounce: { key: "d1" } })).toMatchObject({ status: 400 });
    const both = { debounce: { key: "d1", quiet: "1h" }, delay: "1h" };
    expect(await post("/api/v1/workflows/order/runs", both)).toMatchObject({ json: { code: "INVALID_INPUT" } });
  }
});

test("each start of a batch has an id of its own, with which its result is read", async () => {
  const { get, post, pawl } = await serve({ registered: [mail] });
  const begin = (user: string) => post("/api/v1/workflows/mail/runs", { input: { user } });
  const first = await begin("ada");
  const second = await begin("ada");
  const runId = first.json.id.split(".")[0];
  expect([first.json, second.json]).toMatchObject([
    { id: `${runId}.0`, created: true, merged: false },
    { id: `${runId}.1`, created: false, merged: true },
  ]);
  await pawl.run(runId).result({ timeout: "1m" });
  expect((await get(`/api/v1/runs/${second.json.id}`)).json).toMatchObject({
    id: `${runId}.1`,
    status: "completed",
    input: { user: "ada" },
    output: "to ada",
    gathered: { by: "batch", position: 1 },
  });
  const refused = await post(`/api/v1/runs/${second.json.id}/cancel`, {});
  expect(refused).toMatchObject({ status: 409, json: { code: "INVALID_STATE" } });
  expect((await get(`/api/v1/runs/${second.json.id}/result`)).json).toMatchObject({ output: "to ada" });
  for (const view of ["history", "step?node=x", "retry", "waterfall"])
    expect((await get(`/api/v1/runs/${second.json.id}/${view}`)).status, view).toBe(200);
  expect((await get(`/api/v1/runs/${runId}.x`)).status).toBe(404);
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
