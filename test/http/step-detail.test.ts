/** What the API tells about one step of a run, about its retry, and about a run whose row is damaged. */
import { PermanentError, workflow } from "pawl";
import { expect, test } from "vitest";
import { rawSql } from "../support/raw-sql.js";
import { until } from "../support/waiting.js";
import { eventfulWorld, localRequest, secret } from "./eventful-world.js";
import { serve } from "./served-pawl.js";

const child = workflow("child", async () => 1);
const parent = workflow("parent", async (ctx, { isBroken }: { isBroken: boolean }) => {
  const charge = (attempt: number) => {
    if (attempt < 2) throw new Error("declined", { cause: new Error("bank") });
    return { receipt: 7 };
  };
  const options = { input: { cents: 4200 }, retry: { attempts: 3, initial: "1ms" } } as const;
  await ctx.step("charge", ({ attempt }) => charge(attempt), options);
  await ctx.run(child, undefined, { name: "notify" });
  await ctx.step("ship", () => {
    if (isBroken) throw new PermanentError("no shelf");
  });
});

test("a step has its attempts, its input and output, its idempotency key and its events", async () => {
  const { pawl, get } = await serve();
  await pawl.worker({ workflows: [parent, child] }).start();
  const run = await pawl.start(parent, { isBroken: false });
  await run.result();
  const { json } = await get(`/api/v1/runs/${run.id}/step?node=charge`);
  expect(json).toMatchObject({
    node: "charge",
    name: "charge",
    structure: null,
    idempotencyKey: `${run.id}:charge`,
    input: { cents: 4200 },
    output: { receipt: 7 },
    executionCount: 2,
    children: [],
  });
  expect(json.executions.map(({ state }: { state: string }) => state)).toEqual(["failed", "completed"]);
  expect(json.executions[0].error).toMatchObject({ message: "declined", cause: { message: "bank" } });
  expect(json.events.map(({ type }: { type: string }) => type)).toContain("step.completed");
  expect(json.eventCount).toBe(json.events.length);
});

test("a call that started a child names the child; a step that the log does not have is empty", async () => {
  const { pawl, get } = await serve();
  await pawl.worker({ workflows: [parent, child] }).start();
  const run = await pawl.start(parent, { isBroken: false });
  await run.result();
  const { json } = await get(`/api/v1/runs/${run.id}/step?node=notify`);
  expect(json.children).toMatchObject([{ workflow: "child", status: "completed" }]);
  expect(json.idempotencyKey).toBeNull();
  const unknown = await get(`/api/v1/runs/${run.id}/step?node=${encodeURIComponent("../a b/#1")}`);
  expect(unknown.json).toMatchObject({ node: "../a b/#1", executions: [], events: [], output: null });
});

test("the retry of a failed run is found", async () => {
  const { pawl, get } = await serve();
  await pawl.worker({ workflows: [parent, child] }).start();
  const run = await pawl.start(parent, { isBroken: true });
  await until(async () => (await run.status()) === "failed");
  expect((await get(`/api/v1/runs/${run.id}/retry`)).json).toEqual({ retry: null });
  const retry = await run.retry();
  expect((await get(`/api/v1/runs/${run.id}/retry`)).json.retry.id).toBe(retry.id);
  const step = (await get(`/api/v1/runs/${retry.id}/step?node=ship`)).json;
  expect(step.idempotencyKey ?? `${run.id}:ship`).toBe(`${run.id}:ship`);
});

test("a run whose input cannot be read is shown without it", async () => {
  const world = await eventfulWorld({ kind: "sqlite" });
  const sql = await rawSql(world.databaseUrl);
  await sql.query(`UPDATE pawl_runs SET input = '{"a":${secret("x")}' WHERE id = '${world.runs.paused}'`);
  await sql.close();
  const response = await world.handler()(localRequest("GET", `/api/v1/runs/${world.runs.paused}`));
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ status: "paused", input: null, damaged: ["input"] });
});
