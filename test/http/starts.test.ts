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
