/** A run from start to result over HTTP, on every store. */
import { PermanentError, workflow } from "pawl";
import { expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { until } from "../support/waiting.js";
import { serve } from "./served-pawl.js";

const order = workflow("order", async (ctx, input: { sku: string; at?: Date }) => {
  const shelf = await ctx.step("reserve", () => `shelf of ${input.sku}`);
  const approval = await ctx.waitForSignal<{ by: string }>("approved");
  return { shelf, by: approval?.by, at: input.at };
});

const failing = workflow("failing", async (ctx) => {
  await ctx.step("charge", () => {
    throw new PermanentError("card 4711 was declined");
  });
});

forMemoryAnd("sqlite", (kind) => {
  test("a run is started, signalled, awaited and read over HTTP", async () => {
    const { get, post } = await serve({ kind, registered: [order] });
    const input = { sku: "A-1", at: { $pawl: "Date", v: "2026-01-31T09:00:00.000Z" } };
    const started = await post("/api/v1/workflows/order/runs", { input }, { "idempotency-key": "cart-77" });
    expect(started).toMatchObject({ status: 201, json: { created: true } });
    const { id } = started.json;
    expect(await post("/api/v1/workflows/order/runs", { input, idempotencyKey: "cart-77" })).toMatchObject({
      status: 200,
      json: { id, created: false },
    });
    expect(await post("/api/v1/workflows/order/runs", { input: {}, idempotencyKey: "cart-77" })).toMatchObject({
      status: 422,
      json: { code: "KEY_REUSED", runId: id },
    });
    await until(async () => (await get(`/api/v1/runs/${id}`)).json.status === "waiting");
    const waiting = await get(`/api/v1/runs/${id}`);
    expect(waiting.json).toMatchObject({ input, waitingFor: [{ kind: "signal", names: ["approved"] }] });
    expect((await get(`/api/v1/runs/${id}/result?timeoutMs=0`)).status).toBe(202);
    expect((await get("/api/v1/runs?status=waiting&explain=1")).json.runs).toMatchObject([
      { id, explanation: 'It waits for the signal "approved".' },
    ]);

    const signal = {
      name: "approved",
      payload: { by: "finance" },
      key: "webhook-9",
      by: "ada",
      reason: "They called.",
    };
    expect((await post(`/api/v1/runs/${id}/signals`, signal)).status).toBe(200);
    expect((await post(`/api/v1/runs/${id}/signals`, signal)).status).toBe(200);
    const result = await get(`/api/v1/runs/${id}/result`);
    expect(result.json).toEqual({
      status: "completed",
      output: { shelf: "shelf of A-1", by: "finance", at: input.at },
      error: null,
    });
    expect((await get(`/api/v1/runs/${id}/result?plain=1`)).json.output.at).toBe("2026-01-31T09:00:00.000Z");
    const { events } = (await get(`/api/v1/runs/${id}/history`)).json;
    expect(events.map(({ type }: { type: string }) => type)).toEqual([
      "run.started",
      "step.completed",
      "wait.started",
      "command.accepted",
      "signal.received",
      "wait.completed",
      "run.completed",
    ]);
    expect(events[3].data).toEqual({ command: "signal", by: "ada", reason: "They called." });
  });

  test("failed runs are listed by status and by fingerprint, and counted", async () => {
    const { get, post } = await serve({ kind, registered: [failing] });
    const ids = [];
    for (let index = 0; index < 3; index += 1) {
      const { json } = await post("/api/v1/workflows/failing/runs", {});
      await get(`/api/v1/runs/${json.id}/result`);
      ids.push(json.id);
    }
    const failed = await get("/api/v1/runs?status=failed");
    expect(failed.json.runs.map(({ id }: { id: string }) => id).sort()).toEqual(ids.sort());
    const [{ fingerprint, failedStep }] = failed.json.runs;
    expect(failedStep).toBe("charge");
    expect((await get(`/api/v1/runs?fingerprint=${fingerprint}`)).json.runs).toHaveLength(3);
    expect((await get("/api/v1/runs?fingerprint=0000000000000000")).json.runs).toEqual([]);
    expect((await get("/api/v1/errors")).json.errors).toMatchObject([
      {
        fingerprint,
        workflow: "failing",
        status: "failed",
        step: "charge",
        message: "card 4711 was declined",
        count: 3,
      },
    ]);
    expect((await get("/api/v1/counts")).json).toMatchObject({ total: { failed: 3, running: 0 }, capped: [] });
    const retry = await post(`/api/v1/runs/${ids[0]}/retry`, { by: "ada", reason: "The card works again." });
    expect((await get(`/api/v1/runs/${retry.json.id}`)).json).toMatchObject({
      retryOf: ids[0],
      startedBy: { by: "ada", reason: "The card works again." },
    });
  });
});
