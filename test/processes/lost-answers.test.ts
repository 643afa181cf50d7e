/**
 * The connection breaks after the server has carried out a request and before its answer arrives. The sender must find
 * out what happened: nothing is done twice, and nothing is given up.
 */
import { connect, Pawl, StoreError, type WorkerOptions, workflow } from "pawl";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CuttingProxy } from "../support/cutting-proxy.js";
import { forEachStore, openStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { type RawSql, rawSql } from "../support/raw-sql.js";
import { Gate } from "../support/waiting.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** How a successful claim is recognized on the wire. */
/** PostgreSQL receives a claim by the name of its statement; behind PgBouncer, where it has none, by its text. */
const claimMarks = {
  postgres: [process.env.PAWL_TEST_PGBOUNCER === undefined ? "pawl_claim" : "SKIP LOCKED"],
  mysql: ["SKIP LOCKED", "COMMIT"],
  sqld: ["AS route FROM json_each"],
} as const;

forEachStore(
  (kind) => {
    let database: TestDatabase;
    let proxy: CuttingProxy;
    let sql: RawSql;
    /** The URL of the database through the proxy. */
    let pawl: Pawl;

    beforeEach(async () => {
      database = await testDatabase(kind);
      // Over HTTP, because the contents of a web socket are masked.
      proxy = await CuttingProxy.open(database.url.replace(/^ws:/, "http:"));
      sql = await rawSql(database.url);
      pawl = await connect(proxy.url, { logger: silent });
    });

    afterEach(async () => {
      await pawl.close();
      await proxy.close();
      await sql.close();
      await database.drop();
    });

    const count = async (from: string) => Number((await sql.query(`SELECT count(*) AS n FROM ${from}`))[0]?.n);
    const isLogged = (mark: string) => async () => (await count(`pawl_events WHERE data LIKE '%${mark}%'`)) > 0;
    const isNamed = (mark: string) => async () =>
      (await count(`pawl_events WHERE node LIKE '%${mark}%' OR data LIKE '%${mark}%'`)) +
        (await count(`pawl_runs WHERE output LIKE '%${mark}%'`)) >
      0;
    const loseAnswer = (mark: string, isDone: () => Promise<boolean>) =>
      proxy.cut({ marks: [mark], lose: "answer", isDone });
    const work = (workflows: WorkerOptions["workflows"], options: Partial<WorkerOptions> = {}) =>
      pawl.worker({ workflows, poll: 200, lease: "20s", ...options }).start();

    /** The events of a run, which must be the same as without a fault. */
    const story = async (id: string) => (await pawl.run(id).history()).map(({ type, node }) => `${type} ${node ?? ""}`);

    const bodies: string[] = [];
    const marked = workflow("marked", async (ctx, mark: string) => {
      const body = (step: string) => () => {
        bodies.push(`${mark}-${step}`);
        return `${mark}-${step}`;
      };
      await ctx.step("first", body("step"));
      await ctx.sleep(`${mark}-nap`, 20);
      const last = await ctx.step("last", body("last"));
      return `${last}-end`;
    });

    for (const [where, suffix] of [
      ["a step", "step"],
      ["a sleep, which parks the run", "nap"],
      ["the last step", "last"],
      ["the end of the run", "last-end"],
    ] as const) {
      test(`a commit of ${where} whose answer is lost is recognized as written and not repeated`, async () => {
        const names = Array.from({ length: 10 }, (_, n) => `m${n}`);
        bodies.length = 0;
        await work([marked]);
        // The other runs are in the same flush, or in one that waits for it.
        loseAnswer(`m5-${suffix}`, isNamed(`m5-${suffix}`));
        const runs = await pawl.startMany(marked, names);
        expect(await Promise.all(runs.map((run) => run.result()))).toEqual(names.map((name) => `${name}-last-end`));
        await proxy.hasCut();
        expect([...bodies].sort()).toEqual(names.flatMap((name) => [`${name}-last`, `${name}-step`]));
        for (const [n, { id }] of runs.entries()) {
          expect(await story(id)).toEqual([
            "run.started ",
            "step.completed first",
            `timer.started m${n}-nap`,
            `timer.fired m${n}-nap`,
            "step.completed last",
            "run.completed ",
          ]);
        }
        expect((await pawl.verify()).differences).toEqual([]);
      });

      test(`a commit of ${where} is repeated when the request itself is lost`, async () => {
        bodies.length = 0;
        await work([marked]);
        proxy.cut({ marks: [`only-${suffix}`], lose: "request" });
        const run = await pawl.start(marked, "only");
        expect(await run.result()).toBe("only-last-end");
        await proxy.hasCut();
        expect(bodies).toEqual(["only-step", "only-last"]);
        expect((await pawl.verify()).differences).toEqual([]);
      });
    }

    test("runs whose claim was carried out but not answered are executed", async () => {
      const runs = await pawl.startMany(marked, ["one", "two", "three"]);
      proxy.cut({
        marks: claimMarks[kind],
        lose: "answer",
        isDone: async () => (await count("pawl_tasks WHERE state = 2")) > 0,
      });
      await work([marked]);
      await Promise.all(runs.map((run) => run.result()));
      await proxy.hasCut();
    });

    test("a start by a client is acknowledged and exists once when its first answer is lost", async () => {
      loseAnswer("newborn", async () => (await count("pawl_runs")) > 0);
      const run = await pawl.start(marked, "newborn", { idempotencyKey: "once" });
      await proxy.hasCut();
      expect(await count("pawl_runs")).toBe(1);
      await work([marked]);
      expect(await run.result()).toBe("newborn-last-end");
    });

    test("a written start is acknowledged although the check for a live worker gets no answer", async () => {
      const store = await openStore(kind, database.url);
      store.workers = () => Promise.reject(new StoreError("The database is away.", { transient: true }));
      const far = new Pawl(store, silent);
      const run = await far.start(marked, "unserved");
      expect(await count("pawl_runs")).toBe(1);
      await far.close();
      await work([marked]);
      expect(await pawl.run(run.id).result()).toBe("unserved-last-end");
    });

    test("a start that the local worker adopts is acknowledged and executed once when its first answer is lost", async () => {
      bodies.length = 0;
      await work([marked]);
      loseAnswer("adopted", async () => (await count("pawl_runs")) > 0);
      const run = await pawl.start(marked, "adopted");
      expect(await run.result()).toBe("adopted-last-end");
      await proxy.hasCut();
      expect(bodies).toEqual(["adopted-step", "adopted-last"]);
    });

    test("a refused start is still refused when the first answer is lost", async () => {
      await work([marked]);
      const options = { hero: { type: "user", id: "1" } };
      const gate = new Gate();
      const held = workflow("held", async (ctx, _mark: string) => ctx.step("wait", () => gate.opened));
      await work([held]);
      const first = await pawl.start(held, "first", options);
      // The same flush writes a step, by which a commit is recognized, and refuses a start.
      loseAnswer("second-start", async () => true);
      await expect(pawl.start(held, "second-start", options)).rejects.toMatchObject({ code: "ALREADY_ACTIVE" });
      await proxy.hasCut();
      gate.open();
      await first.result();
      expect(await count("pawl_runs")).toBe(1);
    });

    test("a signal to a waiting run is delivered once when its answer is lost", async () => {
      const listener = workflow("listener", async (ctx) => [
        await ctx.waitForSignal("go"),
        await ctx.waitForSignal("go", { timeout: 300 }),
      ]);
      const run = await pawl.start(listener);
      await work([listener]);
      while ((await run.status()) !== "waiting") await new Promise((resolve) => setTimeout(resolve, 5));
      loseAnswer("the-payload", isLogged("the-payload"));
      await run.signal("go", "the-payload");
      expect(await run.result()).toEqual(["the-payload", null]);
      await proxy.hasCut();
    });

    test("a transactional step whose COMMIT was carried out but not answered has its effect once", async () => {
      await sql.query("CREATE TABLE effects (what varchar(50))");
      const transactional = workflow("transactional", async (ctx) =>
        ctx.transaction("pay", async (tx: { query(sql: string): Promise<unknown> }) => {
          await tx.query("INSERT INTO effects VALUES ('paid')");
          return "the-receipt";
        }),
      );
      await work([transactional]);
      proxy.cut({ marks: ["the-receipt", "COMMIT"], lose: "answer", isDone: async () => (await count("effects")) > 0 });
      const run = await pawl.start(transactional);
      expect(await run.result()).toBe("the-receipt");
      await proxy.hasCut();
      expect(await count("effects")).toBe(1);
      expect((await pawl.verify()).differences).toEqual([]);
    });

    test("a transactional step whose COMMIT never arrived is executed again and has its effect once", async () => {
      await sql.query("CREATE TABLE effects (what varchar(50))");
      const transactional = workflow("transactional", async (ctx) =>
        ctx.transaction(
          "pay",
          async (tx: { query(sql: string): Promise<unknown> }) => {
            await tx.query("INSERT INTO effects VALUES ('paid')");
            return "the-receipt";
          },
          { retry: { attempts: 3, initial: 20 } },
        ),
      );
      await work([transactional]);
      proxy.cut({ marks: ["the-receipt", "COMMIT"], lose: "request" });
      const run = await pawl.start(transactional);
      expect(await run.result()).toBe("the-receipt");
      await proxy.hasCut();
      expect(await count("effects")).toBe(1);
      expect((await pawl.verify()).differences).toEqual([]);
    });
  },
  ["postgres", "mysql", "sqld"],
);
