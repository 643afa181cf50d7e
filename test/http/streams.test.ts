/** Streams of server-sent events: nothing is missed, nothing comes twice, and hundreds of viewers cost what one does. */
import { workflow } from "pawl";
import { afterEach, describe, expect, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { killAllProcesses, LibraryProcess } from "../support/library-process.js";
import { seeded } from "../support/seeded-random.js";
import { EventParser, type ServerEvent } from "./event-reader.js";
import { signalCount, stepCount, tickingWorkflow } from "./programs/ticking.mjs";
import { type ServedPawl, serve } from "./served-pawl.js";

afterEach(killAllProcesses);

class TickingWorker extends LibraryProcess {
  readonly ready: Promise<true>;

  constructor(url: string) {
    super("http/programs/ticking-worker", { url });
    this.ready = this.told((message: { kind: string }) => (message.kind === "ready" ? true : undefined));
  }
}

/** Reads a stream up to a random byte, and then comes again with the number of the last event that it has seen whole. */
class CutOffClient {
  readonly events: ServerEvent[] = [];
  connections = 0;
  readonly #url: string;
  readonly #random: () => number;
  #lastId: number | null = null;

  constructor(url: string, seed: number) {
    this.#url = url;
    this.#random = seeded(seed);
  }

  async readToEnd(): Promise<void> {
    while (this.events.at(-1)?.event !== "end") await this.#readPart();
  }

  async #readPart(): Promise<void> {
    this.connections += 1;
    const headers: Record<string, string> = this.#lastId === null ? {} : { "last-event-id": String(this.#lastId) };
    const response = await fetch(this.#url, { headers });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const parser = new EventParser();
    const decoder = new TextDecoder();
    for (let bytesLeft = Math.floor(this.#random() * 15_000); bytesLeft > 0; ) {
      const { done, value } = await reader.read();
      if (done) break;
      const part = value.subarray(0, bytesLeft);
      bytesLeft -= part.length;
      this.#take(parser.add(decoder.decode(part, { stream: true })));
    }
    await reader.cancel();
  }

  #take(events: readonly ServerEvent[]): void {
    this.events.push(...events);
    this.#lastId = events.findLast(({ id }) => id !== null)?.id ?? this.#lastId;
  }
}

/** Sends all signals, some at once and some one after the other, as long as the run takes them. */
async function sendTicks({ post }: Pick<ServedPawl, "post">, id: string): Promise<void> {
  const send = (value: number) => post(`/api/v1/runs/${id}/signals`, { name: "tick", payload: { value }, by: "ada" });
  for (let sent = 0; sent < signalCount; sent += 10)
    await Promise.all(Array.from({ length: 10 }, (_, index) => send(sent + index)));
}

const ticking = tickingWorkflow(workflow);

async function expectWholeLog({ pawl }: Pick<ServedPawl, "pawl">, id: string, client: CutOffClient): Promise<void> {
  const history = await pawl.run(id).history({ limit: 1_000 });
  expect(history.length).toBeGreaterThan(stepCount + 3 * signalCount);
  const seen = client.events.slice(0, -1);
  expect(seen.map((event) => event.id)).toEqual(history.map(({ seq }) => seq));
  expect(seen.map(({ data }) => `${data.seq} ${data.type} ${data.at}`)).toEqual(
    history.map(({ seq, type, at }) => `${seq} ${type} ${at.toISOString()}`),
  );
  expect(client.events.at(-1)).toMatchObject({ event: "end", data: { status: "completed" } });
  // Otherwise nothing was cut off.
  expect(client.connections).toBeGreaterThan(3);
}

forMemoryAnd("sqlite", (kind) => {
  describe("a client that is cut off at random sees each event once and in order, up to the end", () => {
    test("while a worker of the same process executes the run", async () => {
      const served = await serve({ kind, registered: [ticking] });
      const { id } = await served.pawl.start(ticking);
      const clients = [1, 2, 3].map((seed) => new CutOffClient(`${served.url}/api/v1/runs/${id}/events`, seed));
      await Promise.all([sendTicks(served, id), ...clients.map((client) => client.readToEnd())]);
      for (const client of clients) await expectWholeLog(served, id, client);
      // One who comes after the end gets all of it as well.
      const late = new CutOffClient(`${served.url}/api/v1/runs/${id}/events`, 4);
      await late.readToEnd();
      await expectWholeLog(served, id, late);
    });

    // The memory store belongs to one process.
    const testElsewhere = kind === "memory" ? () => {} : test;
    testElsewhere("while a worker of another process executes the run", async () => {
      const served = await serve({ kind });
      const worker = new TickingWorker(served.databaseUrl);
      await worker.ready;
      const { id } = await served.pawl.start(ticking);
      const clients = [5, 6].map((seed) => new CutOffClient(`${served.url}/api/v1/runs/${id}/events`, seed));
      await Promise.all([sendTicks(served, id), ...clients.map((client) => client.readToEnd())]);
      for (const client of clients) await expectWholeLog(served, id, client);
      expect(worker.output).toBe("");
    });
  });

  test("a client begins where it says, and is told when there is nothing more", async () => {
    const quick = workflow("quick", async (ctx) => {
      for (let index = 0; index < 5; index += 1) await ctx.step(`step ${index}`, () => index);
    });
    const served = await serve({ kind, registered: [quick] });
    const run = await served.pawl.start(quick);
    await run.result();
    const idsFor = async (query: string, headers: Record<string, string> = {}) => {
      const text = await (await fetch(`${served.url}/api/v1/runs/${run.id}/events${query}`, { headers })).text();
      return new EventParser().add(text).map(({ id, event }) => id ?? event);
    };
    const all = [1, 2, 3, 4, 5, 6, 7, "end"];
    expect(await idsFor("")).toEqual(all);
    expect(await idsFor("?after=5")).toEqual([6, 7, "end"]);
    expect(await idsFor("?after=5", { "last-event-id": "6" })).toEqual([7, "end"]);
    expect(await idsFor("", { "last-event-id": "7" })).toEqual(["end"]);
    expect(await idsFor("", { "last-event-id": "999999" })).toEqual(["end"]);
    for (const garbage of ["x", "-1", "1e3", "1.5", "9".repeat(30), "0x1", "__proto__"])
      expect(await idsFor("", { "last-event-id": garbage })).toEqual(all);
  });
});

test("the stream of a run that does not exist is not found", async () => {
  const { get } = await serve();
  expect((await get("/api/v1/runs/00000000-0000-7000-8000-000000000000/events")).status).toBe(404);
});
