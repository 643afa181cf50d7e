/** Clients that hold streams and long polls open, leave them, or never read: nothing of them stays. */
import { workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { until } from "../support/waiting.js";
import { localRequest } from "./eventful-world.js";
import { RawConnection, rawRequest } from "./raw-http.js";
import { type ServedOptions, type ServedPawl, serve } from "./served-pawl.js";
import { WatchedRuntime } from "./watched-runtime.js";
import { WatchedStore } from "./watched-store.js";

const waiting = workflow("waiting", async (ctx, _input: unknown) => {
  await ctx.waitForSignal("go");
});

interface WatchedWorld extends ServedPawl {
  readonly runtime: WatchedRuntime;
  readonly store: WatchedStore;
  readonly runId: string;
  readonly errors: unknown[][];
  /** Resolves when no timer, watcher or connection is there that was not there before. */
  untilReleased(): Promise<void>;
}

/** The counts of what runs did are written after this time; the test does not wait for it. */
const tallyIntervalMs = 10_000;

/** A server with one run that waits. Its worker has stopped, so that every timer is of a client. */
async function watchedWorld(options: ServedOptions = {}): Promise<WatchedWorld> {
  const runtime = new WatchedRuntime();
  const store = new WatchedStore();
  const errors: unknown[][] = [];
  const note = (...args: unknown[]) => void errors.push(args);
  const logger = { debug: () => {}, info: () => {}, warn: note, error: note };
  const served = await serve({ registered: [waiting], runtime, wrapStore: store.wrap, logger, ...options });
  const run = await served.pawl.start(waiting, 1);
  await until(async () => (await run.status()) === "waiting");
  // The first long poll begins to listen for results, and its client keeps listening.
  await served.get(`/api/v1/runs/${run.id}/result?timeoutMs=0`);
  await served.worker.stop();
  await until(() => {
    runtime.fire(tallyIntervalMs);
    return runtime.pendingCount() === 0;
  });
  const watchersBefore = store.watchers.size;
  const untilReleased = () =>
    until(() => {
      served.server.closeIdleConnections(); // Those that the test itself keeps alive.
      return runtime.pendingCount() === 0 && store.watchers.size === watchersBefore && served.sockets.size === 0;
    });
  return { ...served, runtime, store, runId: run.id, errors, untilReleased };
}

const open = (served: ServedPawl, path: string) =>
  new RawConnection(served.url).send(rawRequest(`GET ${path}`, ["Host: localhost"]));

/** The status, which comes before the body of a stream. */
async function statusOf(connection: RawConnection): Promise<number> {
  await until(() => connection.received.includes("\r\n\r\n"));
  return Number(connection.received.split(" ", 2)[1]);
}

describe("5,000 clients that want a stream where 50 may be open", () => {
  test("get 50 streams and 4,950 refusals, and leave nothing when they go", async () => {
    const world = await watchedWorld({ maxStreams: 50 });
    const paths = ["/api/v1/changes", `/api/v1/runs/${world.runId}/events`, `/api/v1/runs/${world.runId}/result`];
    const connections: RawConnection[] = [];
    const statuses: number[] = [];
    while (connections.length < 5_000) {
      const batch = Array.from({ length: 250 }, (_, index) => open(world, paths[index % 2] as string));
      connections.push(...batch);
      statuses.push(...(await Promise.all(batch.map(statusOf))));
    }
    const openOnes = connections.filter((_, index) => statuses[index] === 200);
    expect(openOnes.length).toBe(50);
    expect(statuses.filter((status) => status === 503).length).toBe(4_950);
    const refused = connections.find((_, index) => statuses[index] === 503) as RawConnection;
    expect(await refused.answer()).toMatchObject({
      headers: { "retry-after": "5" },
      body: expect.stringContaining("TOO_MANY_STREAMS"),
    });
    // All that is no stream is still answered.
    expect((await world.get("/api/v1/runs")).status).toBe(200);
    // One that goes makes room for one.
    (openOnes[0] as RawConnection).socket.destroy();
    await until(async () => {
      const next = open(world, paths[2] as string);
      const [status] = await Promise.race([
        next.answers(1).then((all) => all.map((one) => one.status)),
        until(() => world.runtime.pendingCount(30_000) > 0).then(() => [0]),
      ]);
      next.socket.destroy();
      return status === 0;
    });
    for (const { socket } of connections) socket.destroy();
    await world.untilReleased();
    expect(world.errors).toEqual([]);
    const again = Array.from({ length: 50 }, () => open(world, "/api/v1/changes"));
    expect(new Set(await Promise.all(again.map(statusOf)))).toEqual(new Set([200]));
  });
});

describe("a client that goes", () => {
  test("from 500 long polls leaves nothing, and is no failure of the server", async () => {
    const world = await watchedWorld({ maxStreams: 100 });
    for (let round = 0; round < 5; round += 1) {
      const polls = Array.from({ length: 100 }, () => open(world, `/api/v1/runs/${world.runId}/result`));
      await until(() => world.runtime.pendingCount(30_000) === 100);
      for (const { socket } of polls) socket.destroy();
      await world.untilReleased();
    }
    expect(world.errors).toEqual([]);
  });

  test.each([["destroy"], ["end"]] as const)("from streams (%s) leaves nothing", async (how) => {
    const world = await watchedWorld();
    const paths = [
      "/api/v1/changes",
      `/api/v1/runs/${world.runId}/events`,
      `/api/v1/runs/${world.runId}/events?after=1`,
    ];
    for (let round = 0; round < 3; round += 1) {
      const streams = paths.map((path) => open(world, path));
      await Promise.all(streams.map(statusOf));
      for (const { socket } of streams) socket[how]();
      await world.untilReleased();
    }
    expect(world.errors).toEqual([]);
  });

  test("before its stream has begun leaves nothing", async () => {
    const world = await watchedWorld({ maxStreams: 1 });
    for (let round = 0; round < 50; round += 1) {
      const connection = open(world, round % 2 === 0 ? "/api/v1/changes" : `/api/v1/runs/${world.runId}/events`);
      connection.socket.once("connect", () => connection.socket.destroy());
      await connection.closed;
    }
    await world.untilReleased();
    expect(await statusOf(open(world, "/api/v1/changes"))).toBe(200);
  });

  test("leaves nothing on servers that drop its response unread", async () => {
    const world = await watchedWorld({ maxStreams: 1 });
    const gone = AbortSignal.abort();
    for (const path of ["/api/v1/changes", `/api/v1/runs/${world.runId}/events`, `/api/v1/runs/${world.runId}/result`])
      await world.handle(localRequest("GET", path, { signal: gone }));
    for (const method of ["GET", "HEAD"]) {
      const controller = new AbortController();
      const response = await world.handle(localRequest(method, "/api/v1/changes", { signal: controller.signal }));
      expect(response.status).toBe(200);
      if (method === "GET") controller.abort();
    }
    expect((await world.handle(localRequest("GET", "/api/v1/changes"))).status).toBe(200);
    expect((await world.handle(localRequest("GET", "/api/v1/changes"))).status).toBe(503);
  });
});

describe("a client that never reads", () => {
  test("a run's events costs the memory of one page, and nothing when it goes", async () => {
    const world = await watchedWorld();
    const run = world.pawl.run(world.runId);
    const payload = "x".repeat(10_000);
    const sendSignals = (count: number) =>
      Promise.all(Array.from({ length: count }, () => run.signal("other", payload)));
    await sendSignals(4_000);
    const connection = open(world, `/api/v1/runs/${world.runId}/events`);
    connection.socket.pause();
    await until(() => [...world.sockets].some(({ writableNeedDrain }) => writableNeedDrain));
    const pagesBefore = world.store.callsOf("log");
    await sendSignals(500);
    await world.get(`/api/v1/runs/${world.runId}/history?limit=1`);
    const [socket] = [...world.sockets].filter(({ writableNeedDrain }) => writableNeedDrain);
    // A page has 200 events of 10 kB. The rest is what the system buffers between the two ends, not the 45 MB of the log.
    expect(socket?.writableLength).toBeLessThan(5_000_000);
    expect(socket?.bytesWritten).toBeLessThan(30_000_000);
    expect(world.store.callsOf("log") - pagesBefore).toBeLessThan(5);
    connection.socket.destroy();
    await world.untilReleased();
  });

  test("the announcements of changes gets one for all that it has missed", async () => {
    const world = await watchedWorld();
    const connection = open(world, "/api/v1/changes");
    await statusOf(connection);
    connection.socket.pause();
    const run = world.pawl.run(world.runId);
    for (let index = 0; index < 200; index += 1) await run.signal("other", index);
    const [socket] = [...world.sockets];
    expect(socket?.bytesWritten).toBeLessThan(10_000);
    connection.socket.destroy();
    await world.untilReleased();
  });
});

test("when the server stops, its streams end, long polls are told, and no timer is left", async () => {
  const world = await watchedWorld();
  const streams = ["/api/v1/changes", `/api/v1/runs/${world.runId}/events`].map((path) => open(world, path));
  await Promise.all(streams.map(statusOf));
  const poll = world.get(`/api/v1/runs/${world.runId}/result`);
  await until(() => world.runtime.pendingCount(30_000) === 1);
  await world.pawl.close();
  expect(await poll).toMatchObject({ status: 503, json: { code: "UNAVAILABLE" } });
  for (const stream of streams) {
    await stream.answers(1); // The last chunk has come: the stream was closed, and not cut.
    stream.socket.destroy();
  }
  await until(() => world.runtime.pendingCount() === 0);
  expect(world.errors).toEqual([]);
});
