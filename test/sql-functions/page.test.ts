/** The SQL of docs/sql-functions.md is executed, and an account with the rights that the page lists can make the calls. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createConnection } from "mysql2/promise";
import { connect, type Pawl, workflow } from "pawl";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { sqlErrors } from "../../src/store/sql/sql-calls.js";
import { emptyDatabase, forEachStore, type TestDatabase } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import { errorOf, until } from "../support/waiting.js";
import { type SqlCaller, sqlCaller, sqlKinds } from "./sql-caller.js";

const page = readFileSync(new URL("../../docs/sql-functions.md", import.meta.url), "utf8");
const blocksOf = (heading: string) => {
  const [section] = page.split(/^## /m).filter((part) => part.startsWith(`${heading}\n`));
  return [...(section as string).matchAll(/^```sql\n(.*?)^```$/gms)].map(([, block]) => block as string);
};
const rights = blocksOf("Rights");
const ofMysql = (block: string) => /\bapp\.|PROCEDURE/.test(block);

const blocks = {
  postgres: { calls: blocksOf("PostgreSQL"), rights: rights.filter((block) => !ofMysql(block)) },
  mysql: { calls: blocksOf("MySQL and MariaDB"), rights: rights.filter(ofMysql) },
};

const order = workflow("order", async (ctx, { sku }: { sku: string }) => {
  const approval = await ctx.waitForSignal<{ by: string }>("approved");
  return `${sku}, approved by ${approval?.by}`;
});

test("the table of errors has all codes", () => {
  for (const [code, { sqlState, errno }] of Object.entries(sqlErrors))
    expect(page).toContain(`| \`${code}\` | \`${sqlState}\` | ${errno} |`);
});

forEachStore((kind) => {
  let database: TestDatabase;
  let pawl: Pawl;

  beforeAll(async () => {
    database = await emptyDatabase(kind);
    pawl = await connect(database.url, { logger: silent });
    await pawl.worker({ workflows: [order], lease: "1 minute" }).start();
  });
  afterAll(async () => {
    await pawl.close();
    await database.drop();
  });
  const databaseName = () => new URL(database.url).pathname.slice(1);

  /** Sends several statements at once, as the owner of the tables. */
  async function execute(text: string): Promise<void> {
    const statements = text.replaceAll("app.", `${databaseName()}.`);
    if (kind === "postgres") {
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      await client.query(statements).finally(() => client.end());
    } else {
      const connection = await createConnection({ uri: database.url, multipleStatements: true });
      await connection.query(statements).finally(() => connection.end());
    }
  }

  /** A new account without rights, and a connection that acts for it. */
  async function account(): Promise<{ readonly name: string; open(): Promise<SqlCaller> }> {
    const name = `shop_${randomBytes(4).toString("hex")}`;
    if (kind === "postgres") {
      await execute(`CREATE ROLE ${name}`);
      onTestFinished(() => execute(`DROP OWNED BY ${name}; DROP ROLE ${name}`));
      return {
        name,
        open: async () => {
          const caller = await sqlCaller(kind, database.url);
          await caller.query(`SET ROLE ${name}`);
          return caller;
        },
      };
    }
    await execute(`CREATE USER ${name} IDENTIFIED BY 'secret'`);
    onTestFinished(() => execute(`DROP USER ${name}`));
    const url = new URL(database.url);
    url.username = name;
    url.password = "secret";
    return { name, open: () => sqlCaller(kind, url.href) };
  }

  /** Everything that the two calls read and write. */
  async function useAllRights(sql: SqlCaller): Promise<void> {
    const key = randomBytes(4).toString("hex");
    const options = { idempotencyKey: key, hero: { type: "Order", id: key }, by: "shop" };
    const id = await sql.start("order", '{"sku":"A-1"}', options);
    expect(await sql.start("order", '{"sku":"A-1"}', options)).toBe(id);
    await until(async () => (await pawl.run(id).status()) === "waiting");
    await sql.signal(id, "approved", '{"by":"shop"}', { key: "k" });
    expect(await pawl.run(id).result()).toBe("A-1, approved by shop");
    await sql.signal(id, "approved", '{"by":"shop"}', { key: "k" });
  }

  test("the calls of the page start a run and take it to its end, also from a trigger", async () => {
    await execute("CREATE TABLE orders (id INT, sku VARCHAR(20))");
    const [start, signal, trigger] = blocks[kind].calls as [string, string, string];
    await execute(start);
    const run = await pawl.find(order, { idempotencyKey: "order-42" });
    await until(async () => (await run?.status()) === "waiting");
    await execute(signal);
    expect(await run?.result()).toBe("A-1, approved by finance");

    await execute(trigger);
    await execute("INSERT INTO orders VALUES (43, 'B-2')");
    const second = await pawl.find(order, { idempotencyKey: "order-43" });
    expect((await second?.get())?.input).toEqual({ sku: "B-2" });
    await second?.signal("approved", { by: "a trigger" });
    expect(await second?.result()).toBe("B-2, approved by a trigger");
  });

  test("an account with the listed rights can make the calls, and one right less is too little", async () => {
    const shop = await account();
    const [grants] = blocks[kind].rights as [string];
    const statements = grants.replaceAll("shop", shop.name).trim().split("\n");
    await execute(grants.replaceAll("shop", shop.name));
    await useAllRights(await shop.open());

    for (const missing of statements.flatMap(singleRights)) {
      await execute(missing.replace(/^GRANT/, "REVOKE").replace(/ TO (\w+);$/, " FROM $1;"));
      const error = await errorOf(useAllRights(await shop.open()));
      expect(error.message, missing).toMatch(/denied/);
      await execute(missing);
    }
    await useAllRights(await shop.open());
  });

  /** PUBLIC may use the schema "public", so that grant is needed only for another schema. */
  const singleRights = (statement: string) => {
    const [, all, rest] = /^GRANT (.+?) (ON .+)$/.exec(statement) as unknown as [string, string, string];
    return all === "USAGE" ? [] : all.split(", ").map((right) => `GRANT ${right} ${rest}`);
  };

  test("an account may be allowed one start and nothing else", async () => {
    const shop = await account();
    const [, wrapper] = blocks[kind].rights as [string, string];
    await execute(wrapper.replaceAll("shop", shop.name));
    const sql = await shop.open();
    let id: string;
    if (kind === "postgres") [{ id }] = (await sql.query("SELECT start_order('C-3') AS id")) as [{ id: string }];
    else {
      await sql.query("CALL start_order('C-3', @id)");
      [{ id }] = (await sql.query("SELECT @id AS id")) as [{ id: string }];
    }
    await pawl.run(id).signal("approved", { by: "the owner" });
    expect(await pawl.run(id).result()).toBe("C-3, approved by the owner");
    expect((await errorOf(sql.start("order", '{"sku":"D-4"}'))).message).toMatch(/denied/);
    expect((await errorOf(sql.query("SELECT * FROM pawl_runs"))).message).toMatch(/denied/);
  });
}, sqlKinds);
