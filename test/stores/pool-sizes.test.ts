/** The application controls how many connections a process opens. */
import { connect, type Pawl, workflow } from "pawl";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { emptyDatabase, forEachStore, type TestDatabase } from "../support/databases.js";
import { Gate, until } from "../support/waiting.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

forEachStore(
  (kind) => {
    let database: TestDatabase;
    beforeAll(async () => {
      database = await emptyDatabase(kind);
    });
    afterAll(() => database.drop());

    const connected = async (pool?: { readonly max?: number; readonly transactions?: number }): Promise<Pawl> => {
      const options = { logger: silent, notify: false, ...(pool === undefined ? {} : { pool }) };
      const pawl = await connect(database.url, options);
      onTestFinished(() => pawl.close());
      return pawl;
    };
    const askAtOnce = (pawl: Pawl) => Promise.all(Array.from({ length: 40 }, () => pawl.runs({ limit: 1 })));

    test("at most `pool.max` connections are opened, and more than one by default", async () => {
      const small = await connected({ max: 2 });
      await askAtOnce(small);
      expect(await database.connections()).toBe(2);
      await small.close();
      await until(async () => (await database.connections()) === 0);
      await askAtOnce(await connected());
      expect(await database.connections()).toBeGreaterThan(2);
    });

    test("transactions of steps wait for one of `pool.transactions` connections, and nothing else waits for them", async () => {
      const pawl = await connected({ max: 2, transactions: 1 });
      const gate = new Gate();
      let [open, most] = [0, 0];
      const held = workflow("held", (ctx) =>
        ctx.transaction("hold", async () => {
          most = Math.max(most, ++open);
          await gate.opened;
          open -= 1;
        }),
      );
      await pawl.worker({ workflows: [held] }).start();
      const runs = await pawl.startMany(held, [undefined, undefined, undefined]);
      await until(() => open === 1);
      await askAtOnce(pawl);
      gate.open();
      await Promise.all(runs.map((run) => run.result()));
      expect(most).toBe(1);
    });
  },
  ["postgres", "mysql"],
);

test("connection options that a database does not support, or that are invalid, are refused by name", async () => {
  const refusals: [url: string, options: object, sentence: string][] = [
    ["memory:", { pooled: true }, '`pooled` is for PostgreSQL; a "memory" database does not have it.'],
    ["mysql://localhost/x", { listenUrl: "postgres://x" }, "`listenUrl` is for PostgreSQL"],
    ["sqlite::memory:", { pool: { max: 3 } }, "`pool` is for PostgreSQL and MySQL"],
    ["postgres://localhost/x", { pooled: "yes" }, '`pooled` is true, false or "auto", not "yes".'],
    ["postgres://localhost/x", { listenUrl: "localhost" }, "`listenUrl` is the URL of the PostgreSQL server itself"],
    ["postgres://localhost/x", { pool: 5 }, "`pool` is { max, transactions }, not 5."],
    ["postgres://localhost/x", { pool: { size: 5 } }, '`pool` has no option "size": it has max and transactions.'],
    ["mysql://localhost/x", { pool: { max: 0 } }, "`pool.max` is a whole number of connections, at least 1, not 0."],
  ];
  for (const [url, options, sentence] of refusals)
    await expect(connect(url, { ...options, logger: silent })).rejects.toThrow(sentence);
});
