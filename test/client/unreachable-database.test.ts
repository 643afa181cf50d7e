/** An unreachable database is reported in one line, and its return in another, however many components notice. */
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from "node:net";
import { connect, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, type StoreKind, testDatabase } from "../support/databases.js";
import { errorOf, gate, until } from "../support/waiting.js";

/** A proxy in front of a server that can be closed and opened again. */
class ServerProxy {
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;
  #port = 0;
  #isMute = false;

  constructor(url: string) {
    this.#target = new URL(url);
  }

  async open(): Promise<void> {
    if (this.#server !== null) return;
    const { protocol, hostname, port } = this.#target;
    const target = { host: hostname, port: Number(port || (protocol === "mysql:" ? 3306 : 5432)) };
    this.#server = createServer((near) => this.#join(near, dial(target)));
    await new Promise<void>((resolve) => this.#server?.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  #join(near: Socket, far: Socket): void {
    if (this.#isMute) far.destroy();
    else near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        if (this.#isMute) return;
        near.destroy();
        far.destroy();
      });
    }
  }

  /** Behaves like a pulled cable: connections stay open, and nothing is answered. */
  mute(): void {
    this.#isMute = true;
    for (const socket of this.#sockets) socket.unpipe().pause();
  }

  async close(): Promise<void> {
    if (this.#server === null) return;
    const closed = new Promise((resolve) => this.#server?.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    this.#server = null;
  }

  get url(): string {
    const url = new URL(this.#target);
    url.hostname = "127.0.0.1";
    url.port = String(this.#port);
    return url.href;
  }
}

/** Collects everything that was logged; warnings and errors with all their arguments. */
function listener() {
  const said: unknown[][] = [];
  const inDetail: string[] = [];
  const note = (...args: unknown[]) => void said.push(args);
  const debug = (...args: unknown[]) => void inDetail.push(String(args[0]));
  return { said, inDetail, logger: { debug, info: note, warn: note, error: note } };
}

async function openProxy(kind: StoreKind): Promise<ServerProxy> {
  const database = await testDatabase(kind);
  const proxy = new ServerProxy(database.url);
  await proxy.open();
  onTestFinished(async () => {
    await proxy.close();
    await database.drop();
  });
  return proxy;
}

forEachStore(
  (kind) => {
    test("a worker reports once that its database is unreachable and once that it is back, and its run completes", async () => {
      const database = await testDatabase(kind);
      const proxy = new ServerProxy(database.url);
      await proxy.open();
      const { said: all, inDetail, logger } = listener();
      // On a busy machine the short lease may expire, and then there are other warnings as well.
      const ofDatabase = () => all.filter(([text]) => String(text).startsWith("Pawl's database"));
      const pawl = await connect(proxy.url, { logger });
      onTestFinished(async () => {
        await proxy.open();
        await pawl.close();
        await proxy.close();
        await database.drop();
      });
      const [begun, goOn] = [gate(), gate()];
      const slow = workflow("slow", (ctx) =>
        ctx.step("slow", async () => {
          begun.open();
          await goOn.opened;
          return "done";
        }),
      );
      await pawl.worker({ name: "w1", workflows: [slow], lease: "300ms", poll: "50ms" }).start();
      const run = await pawl.start(slow);
      await begun.opened;

      await proxy.close();
      goOn.open();
      const noticed = (what: string) => inDetail.filter((line) => line.startsWith(what)).length;
      // Every operation of the worker has failed. It keeps trying to claim without logging again.
      await until(() => noticed('Worker "w1" could not claim') > 0);
      for (const what of ["A heartbeat failed", 'Worker "w1": commit failed']) await until(() => noticed(what) > 1);
      expect(ofDatabase()).toEqual([
        [expect.stringMatching(/^Pawl's database: cannot be reached \(.+\); trying again\.$/)],
      ]);

      await proxy.open();
      expect(await run.result({ timeout: "100s" })).toBe("done");
      await until(() => ofDatabase().length > 1);
      expect(ofDatabase().slice(1)).toEqual([["Pawl's database: reached again."]]);
    });

    test("a worker, idle or busy, stops without waiting for an unreachable database", async () => {
      const proxy = await openProxy(kind);
      const { inDetail, said, logger } = listener();
      const begun = gate();
      const endless = workflow("endless", (ctx) =>
        ctx.step("endless", async () => {
          begun.open();
          await new Promise(() => {});
        }),
      );
      const goOn = gate();
      const lastBegun = gate();
      const ended = workflow("ended", (ctx) =>
        ctx.step("ended", () => {
          lastBegun.open();
          return goOn.opened;
        }),
      );
      const [idle, busy] = [await connect(proxy.url, { logger }), await connect(proxy.url, { logger })];
      // With a short lease, a busy machine would lose the runs before the database is away.
      const options = { lease: "1m", poll: "50ms", grace: "100ms" } as const;
      await idle.worker({ name: "idle", workflows: [], jobs: [], ...options }).start();
      await busy.worker({ name: "busy", workflows: [endless, ended], ...options }).start();
      await busy.startMany(endless, [undefined]);
      await busy.start(ended);
      await Promise.all([begun.opened, lastBegun.opened]);

      await proxy.close();
      goOn.open();
      const failed = (what: string) => inDetail.filter((line) => line.startsWith(what)).length;
      await until(() => failed('Worker "idle" could not claim') > 0);
      await until(() => failed('Worker "busy": commit failed') > 0);
      await Promise.all([idle.close(), busy.close()]);

      const lines = said.map(([line]) => String(line));
      expect(lines.filter((line) => line.includes("could not deregister")).sort()).toEqual([
        'Worker "busy" could not deregister; other workers take its runs when its lease expires.',
        'Worker "idle" could not deregister; other workers take its runs when its lease expires.',
      ]);
      expect(lines.filter((line) => line.startsWith("Run "))).toEqual([]);
    });

    test("a worker stops without waiting for a database that stopped answering on open connections", async () => {
      const proxy = await openProxy(kind);
      const { said, logger } = listener();
      const pawl = await connect(proxy.url, { logger });
      const worker = pawl.worker({
        name: "w",
        workflows: [workflow("w", async () => {})],
        poll: "20ms",
        grace: "100ms",
      });
      await worker.start();
      proxy.mute();
      const asked = errorOf(pawl.runs());
      await pawl.close();
      expect(await asked).toMatchObject({ code: "STORE_ERROR" });
      expect(said.filter((args) => args.length > 1)).toEqual([]);
    });

    test("an unreachable server is named with the reason in the error and in one log line", async () => {
      const { said, logger } = listener();
      const url = kind === "mysql" ? "mysql://root@127.0.0.1:1/none" : "postgres://nobody@127.0.0.1:1/none";
      expect(await errorOf(connect(url, { logger }))).toMatchObject({
        code: "STORE_ERROR",
        transient: true,
        unreachable: true,
        message: expect.stringContaining("ECONNREFUSED 127.0.0.1:1"),
      });
      expect(said).toEqual([["Pawl's database: cannot be reached (connect ECONNREFUSED 127.0.0.1:1); trying again."]]);
    });
  },
  ["postgres", "mysql"],
);
