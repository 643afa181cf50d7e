/** Many people who watch the same thing: the database is asked once for all of them, and nobody sees a stale answer. */
import { Pawl, type RunHandle, workflow } from "pawl";
import { type HttpHandler, httpHandler } from "pawl/http";
import { describe, expect, onTestFinished, test } from "vitest";
import { type AnyStoreKind, openStore, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { silent } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";
import { EventParser, type ServerEvent } from "./event-reader.js";
import { localRequest } from "./eventful-world.js";
import { WatchedRuntime } from "./watched-runtime.js";
import { WatchedStore } from "./watched-store.js";

const waiting = workflow("waiting", async (ctx, _input: unknown) => {
  await ctx.waitForSignal("go");
});

interface Watched {
  readonly handle: HttpHandler;
  readonly runtime: WatchedRuntime;
  readonly store: WatchedStore;
  /** Another client of the same database, with a worker. */
  readonly other: Pawl;
  start(): Promise<RunHandle<any, any>>;
  get(path: string): Promise<any>;
  post(path: string, body?: object): Promise<any>;
}

/** A handler whose calls of the store are counted, on a clock that stands still: nothing becomes stale by itself. */
async function watched(kind: AnyStoreKind): Promise<Watched> {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  const first = await openStore(kind, database.url);
  await first.migrate();
  const runtime = new WatchedRuntime();
  runtime.stoppedAt = runtime.monotonic();
  const store = new WatchedStore();
  const pawl = new Pawl(store.wrap(first), silent, { runtime });
  const other = new Pawl(kind === "memory" ? first : await openStore(kind, database.url), silent);
  onTestFinished(async () => {
    await pawl.close();
    await other.close();
  });
  await other.worker({ workflows: [waiting] }).start();
  const handle = httpHandler(pawl);
  const call = async (method: string, path: string, body?: object) =>
    (await handle(localRequest(method, `/api/v1/${path}`, { body }))).json();
  return {
    ...{ handle, runtime, store, other },
    start: async () => {
      const run = await other.start(waiting, 1);
      await until(async () => (await run.status()) === "waiting");
      return run;
    },
    get: (path) => call("GET", path),
    post: (path, body = {}) => call("POST", path, body),
  };
}

/** Someone who has a stream open and notes what arrives. */
class Viewer {
  readonly events: ServerEvent[] = [];
  readonly parser = new EventParser();
  /** Called with each event. */
  onEvent: (event: ServerEvent) => void = () => {};
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

  private constructor(response: Response) {
    this.#reader = (response.body as ReadableStream<Uint8Array>).getReader();
    onTestFinished(() => this.close());
    void this.#read();
  }

  static async open(handle: HttpHandler, path: string): Promise<Viewer> {
    const response = await handle(localRequest("GET", `/api/v1/${path}`));
    expect(response.status).toBe(200);
    return new Viewer(response);
  }

  async #read(): Promise<void> {
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return;
      for (const event of this.parser.add(new TextDecoder().decode(value))) {
        this.events.push(event);
        this.onEvent(event);
      }
    }
  }

  async close(): Promise<void> {
    await this.#reader.cancel();
  }
}

/** Announcements wait for a tick, and for a second since the last one; here the test says when both are over. */
function announce(runtime: WatchedRuntime): void {
  for (const ms of [5_000, 2_000, 1_000]) runtime.fire(ms);
}

const viewerCount = 200;
const openViewers = (handle: HttpHandler, path: string) =>
  Promise.all(Array.from({ length: viewerCount }, () => Viewer.open(handle, path)));

forMemoryAnd("postgres", (kind) => {
  test("200 viewers of a list ask the database once for each announcement", async () => {
    const { handle, runtime, store, start, get } = await watched(kind);
    const viewers = await openViewers(handle, "changes");
    const lengths = viewers.map(() => -1);
    let underWay = 0;
    for (const [index, viewer] of viewers.entries()) {
      const read = async () => {
        underWay += 1;
        lengths[index] = (await get("runs?limit=100&explain=1")).runs.length;
        underWay -= 1;
      };
      viewer.onEvent = () => void read();
      void read();
    }
    const questions = () => store.callsOf("maintenance.questions.runs");
    await until(() => lengths.every((length) => length === 0));
    for (let runs = 1; runs <= 3; runs += 1) {
      const before = { questions: questions(), events: viewers[0]?.events.length as number };
      await start();
      await until(() => {
        if (underWay === 0) announce(runtime);
        return lengths.every((length) => length === runs);
      });
      const announcements = (viewers[0]?.events.length as number) - before.events;
      expect(questions() - before.questions).toBeLessThanOrEqual(announcements);
      expect(new Set(viewers.map(({ events }) => events.length)).size).toBeLessThanOrEqual(2);
    }
    expect(store.watchers.size).toBe(1);
    for (const viewer of viewers) await viewer.close();
    await until(() => underWay === 0);
  });

  test("200 viewers of a run's events cost one poll and one page for each growth", async () => {
    const { handle, store, runtime, start } = await watched(kind);
    const run = await start();
    const viewers = await openViewers(handle, `runs/${run.id}/events`);
    const untilSeen = (count: number) => until(() => viewers.every(({ events }) => events.length >= count));
    const { length } = await run.history();
    await untilSeen(length);
    const counts = () => ({
      polls: store.callsOf("tasks"),
      pages: store.callsOf("log"),
      reasons: store.hintCount + runtime.firedCount,
    });
    const before = counts();
    const growths = 10;
    for (let growth = 1; growth <= growths; growth += 1) {
      await run.signal("other", growth);
      await untilSeen(length + growth);
    }
    const after = counts();
    expect(after.pages - before.pages).toBe(growths);
    // A poll is for a hint or for the timer, and never for a viewer.
    expect(after.polls - before.polls).toBeLessThanOrEqual(after.reasons - before.reasons);
    for (const { events } of viewers)
      expect(events.map(({ id }) => id)).toEqual(viewers[0]?.events.map(({ id }) => id));
    expect(store.watchers.size).toBe(1);
  });

  test("what is changed through the handler is in the next answer", async () => {
    const { get, post } = await watched(kind);
    const runIds = async () => (await get("runs")).runs.map(({ id }: { id: string }) => id);
    for (let round = 1; round <= 5; round += 1) {
      const before = await runIds();
      const { id } = await post("workflows/waiting/runs", { input: round });
      expect(await runIds()).toEqual([id, ...before]);
      await until(async () => (await get(`runs/${id}`)).status === "waiting");
      await post(`runs/${id}/pause`, { reason: "so" });
      expect((await get("runs?status=paused")).runs).toHaveLength(round);
      expect((await get("counts")).total.paused).toBe(round);
      await post("queues/waiting/pause", { reason: `round ${round}` });
      expect((await get("queues")).queues[0].paused.reason).toBe(`round ${round}`);
      await post("queues/waiting/resume");
      expect((await get("queues")).queues[0].paused).toBeNull();
    }
  });
});

test("an answer that was read before a change is not given to those who ask after it", async () => {
  const { get, post, store } = await watched("memory");
  await get("runs");
  await post("verify");
  // The question is under way when the change is made, and is answered after it.
  const slow = gate();
  store.delay = (path) => (path === "maintenance.questions.runs" ? slow.opened : undefined);
  const early = get("runs");
  await until(() => store.callsOf("maintenance.questions.runs") === 2);
  store.delay = null;
  const { id } = await post("workflows/waiting/runs", { input: 1 });
  expect((await get("runs")).runs.map((run: { id: string }) => run.id)).toEqual([id]);
  slow.open();
  await early;
  expect((await get("runs")).runs.map((run: { id: string }) => run.id)).toEqual([id]);
});

test("answers that people share are written for each of them by what they may see", async () => {
  const { start, other } = await watched("memory");
  await start();
  const accesses: Record<string, "all" | []> = { ada: "all", bob: [] };
  const handle = httpHandler(other, {
    authorize: (request) => {
      const user = request.headers.get("x-user") as string;
      return { user, access: accesses[user] as "all" | [] };
    },
    redact: (value, { user }) => (user === "ada" ? value : "hidden"),
  });
  const inputFor = async (user: string) => {
    const response = await handle(localRequest("GET", "/api/v1/runs", { headers: { "x-user": user } }));
    return ((await response.json()) as any).runs[0].input;
  };
  for (let round = 0; round < 3; round += 1) {
    expect(await inputFor("ada")).toBe(1);
    expect(await inputFor("bob")).toEqual({ $pawl: "hidden" });
  }
});

describe("a stream on which nothing happens", () => {
  test.each(["changes", "events"])("of %s sends a comment every 15 seconds, and goes on", async (what) => {
    const { handle, runtime, start } = await watched("memory");
    const run = await start();
    const viewer = await Viewer.open(handle, what === "changes" ? "changes" : `runs/${run.id}/events`);
    const { length } = what === "changes" ? [1] : await run.history();
    await until(() => viewer.events.length === length);
    for (let beats = 1; beats <= 3; beats += 1) {
      await until(() => runtime.pendingCount(15_000) === 1);
      runtime.fire(15_000);
      await until(() => viewer.parser.comments.length === beats);
    }
    expect(viewer.parser.comments).toEqual([": still here", ": still here", ": still here"]);
    await run.signal("other", 1);
    await until(() => {
      announce(runtime);
      return viewer.events.length > length;
    });
    await viewer.close();
    await until(() => runtime.pendingCount(15_000) === 0);
  });
});
