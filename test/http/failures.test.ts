/** What goes wrong on the server: the client is told no details, and the log is told once. */
import { workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { StoreError } from "../../src/core/errors/errors.js";
import { CuttingProxy } from "../support/cutting-proxy.js";
import { forEachStore, isLeftOut, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { until } from "../support/waiting.js";
import { readEvents } from "./event-reader.js";
import { type ServedOptions, serve } from "./served-pawl.js";
import { WatchedStore } from "./watched-store.js";

const waiting = workflow("waiting", async (ctx, _input: unknown) => {
  await ctx.waitForSignal("go");
});

async function loggedServe(options: ServedOptions) {
  const lines: unknown[][] = [];
  const note = (...args: unknown[]) => void lines.push(args);
  const logger = { debug: () => {}, info: () => {}, warn: note, error: note };
  const served = await serve({ registered: [waiting], logger, ...options });
  const run = await served.pawl.start(waiting, { card: "4711" });
  await until(async () => (await run.status()) === "waiting");
  return { ...served, lines, runId: run.id };
}

const problemKeys = ["type", "title", "status", "detail", "code", "instance"];

describe("an exception", () => {
  test("in authorize is answered with 500 without details, and logged once", async () => {
    const thrown = new Error("the key store at 10.0.0.7 refused token abc123");
    const { get, lines } = await loggedServe({
      authorize: () => {
        throw thrown;
      },
    });
    const { status, json } = await get("/api/v1/runs");
    expect([status, json.code, Object.keys(json)]).toEqual([500, "INTERNAL_ERROR", problemKeys]);
    expect(JSON.stringify(json)).not.toMatch(/key store|abc123|10\.0\.0\.7|at /);
    expect(lines).toEqual([
      [expect.stringMatching(/^HTTP request failed \(GET \/api\/v1\/runs, [0-9a-f]{12}\)\.$/), thrown],
    ]);
    // The answer names the line of the log.
    expect(lines[0]?.[0]).toContain(json.instance.split(":").at(-1));
  });

  test("that is no error is answered in the same way", async () => {
    for (const thrown of [null, undefined, "secret text", 42, { secret: true }, Symbol("secret")]) {
      const { get, lines } = await loggedServe({ authorize: () => Promise.reject(thrown) });
      const { status, json } = await get("/api/v1/runs");
      expect([status, Object.keys(json), lines.length]).toEqual([500, problemKeys, 1]);
      expect(JSON.stringify(json)).not.toContain("secret");
    }
  });

  test("in redact is answered with 500 without details, and logged once", async () => {
    const thrown = new Error("cannot redact card 4711");
    const { get, lines, runId } = await loggedServe({
      redact: () => {
        throw thrown;
      },
    });
    for (const path of ["/api/v1/runs", `/api/v1/runs/${runId}`, `/api/v1/runs/${runId}/history`]) {
      lines.length = 0;
      const { status, json } = await get(path);
      expect([path, status, Object.keys(json)]).toEqual([path, 500, problemKeys]);
      expect(JSON.stringify(json)).not.toContain("4711");
      expect(lines).toEqual([[expect.stringContaining(`GET ${path}`), thrown]]);
    }
  });

  test("in redact breaks a stream off, without details, and is logged once", async () => {
    const thrown = new Error("cannot redact card 4711");
    const { url, lines, runId, sockets, server } = await loggedServe({
      redact: () => {
        throw thrown;
      },
    });
    const read = async () => readEvents((await fetch(`${url}/api/v1/runs/${runId}/events`)).body);
    await expect(read()).rejects.toThrow(/terminated|fetch failed/);
    expect(lines).toEqual([[expect.stringContaining("/events"), thrown]]);
    await until(() => {
      server.closeIdleConnections();
      return sockets.size === 0;
    });
  });

  test("of the store is answered with 500 without details, because it may quote what is stored", async () => {
    const store = new WatchedStore();
    const { get, post, lines } = await loggedServe({ wrapStore: store.wrap });
    const failure = new StoreError("duplicate key: card 4711", { transient: false, cause: new Error("card 4711") });
    store.failure = () => failure;
    for (const answer of [await get("/api/v1/runs"), await post("/api/v1/workflows/waiting/runs")]) {
      expect([answer.status, answer.json.code]).toEqual([500, "STORE_ERROR"]);
      expect(JSON.stringify(answer.json)).not.toContain("4711");
    }
    expect(lines.filter(([, error]) => error === failure).length).toBe(2);
    store.failure = null;
  });
});

describe("a database that cannot be reached", () => {
  test("is answered with 503 and a time to try again, and is not ready; the process is alive", async () => {
    const store = new WatchedStore();
    const { get, post, lines, runId } = await loggedServe({ wrapStore: store.wrap });
    expect((await get("/ready")).status).toBe(200);
    store.failure = () => new StoreError("connect ECONNREFUSED 10.0.0.7", { transient: true, unreachable: true });
    await until(async () => (await get("/ready")).status === 503);
    const problem = { status: 503, json: { code: "UNAVAILABLE" } };
    expect(await get("/live")).toMatchObject({ status: 200, json: { status: "ok" } });
    for (const path of [
      "runs",
      "counts",
      "errors",
      "workers",
      "queues",
      "workflows",
      "figures",
      "me",
      `runs/${runId}`,
      `runs/${runId}/events`,
    ])
      expect([path, await get(`/api/v1/${path}`)]).toMatchObject([path, problem]);
    const answer = await post(`/api/v1/runs/${runId}/pause`);
    expect(answer).toMatchObject(problem);
    expect(answer.headers.get("retry-after")).toBe("5");
    expect(JSON.stringify(answer.json)).not.toContain("10.0.0.7");
    expect(lines).toEqual([]);
    store.failure = null;
    expect((await get("/ready")).status).toBe(200);
    expect((await get("/api/v1/runs")).json.runs).toHaveLength(1);
  });

  test("ends the streams, whose clients then come again", async () => {
    const store = new WatchedStore();
    const { url, lines, runId } = await loggedServe({ wrapStore: store.wrap });
    const response = await fetch(`${url}/api/v1/runs/${runId}/events`);
    store.failure = () => new StoreError("gone", { transient: true, unreachable: true });
    await expect(readEvents(response.body)).rejects.toThrow("terminated");
    expect(lines).toEqual([]);
    store.failure = null;
  });
});

forEachStore(
  (kind) => {
    test("a server of the database that goes away is told apart from one that refuses, on a real connection", async () => {
      const database = await testDatabase(kind);
      const proxy = await CuttingProxy.open(database.url);
      const { get, pawl } = await loggedServe({ kind, databaseUrl: proxy.url });
      expect((await get("/ready")).status).toBe(200);
      await proxy.close();
      await until(async () => (await get("/ready")).status === 503);
      expect(await get("/api/v1/runs")).toMatchObject({ status: 503, json: { code: "UNAVAILABLE" } });
      expect((await get("/live")).status).toBe(200);
      await pawl.close();
      await database.drop();
    });
  },
  (["postgres", "mysql"] as const).filter((kind) => !isLeftOut(kind)),
);

forMemoryAnd("mysql", (kind) => {
  test("a Pawl that was closed answers 503, and is alive but not ready", async () => {
    const { get, post, pawl, lines, runId } = await loggedServe({ kind });
    await pawl.close();
    lines.length = 0;
    expect((await get("/live")).status).toBe(200);
    for (const path of [
      "/ready",
      "/api/v1/runs",
      `/api/v1/runs/${runId}`,
      `/api/v1/runs/${runId}/events`,
      "/api/v1/changes",
      "/api/v1/counts",
    ])
      expect([path, await get(path)]).toMatchObject([path, { status: 503, json: { code: "UNAVAILABLE" } }]);
    expect((await post("/api/v1/workflows/waiting/runs")).status).toBe(503);
    expect(lines).toEqual([]);
  });

  test("the result of a run that has ended is there at once, without any waiting", async () => {
    const quick = workflow("quick", async () => "done");
    const { get, pawl } = await serve({ kind, registered: [quick] });
    const run = await pawl.start(quick);
    await run.result();
    for (let round = 0; round < 20; round += 1)
      expect(await get(`/api/v1/runs/${run.id}/result?timeoutMs=0`)).toMatchObject({
        status: 200,
        json: { output: "done" },
      });
  });
});
