/** The functions of PostgreSQL in schemas other than "public", and under settings of the caller that could mislead them. */
import { connect, workflow } from "pawl";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { channelOf } from "../../src/store/postgres/connection/notifier.js";
import { emptyDatabase, forEachStore } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";
import { refusalOf, sqlCaller } from "./sql-caller.js";

const greet = workflow("greet", async (ctx, name: string) => {
  const { greeting } = (await ctx.waitForSignal<{ greeting: string }>("greeting")) ?? { greeting: "" };
  return `${greeting}, ${name}`;
});

forEachStore(
  (kind) => {
    const open = async (schema?: string) => {
      const database = await emptyDatabase(kind);
      const pawl = await connect(database.url, { logger: silent, ...(schema === undefined ? {} : { schema }) });
      onTestFinished(async () => {
        await pawl.close();
        await database.drop();
      });
      return { pawl, url: database.url };
    };

    test.each(["jobs", 'a "schema" with $$ and $function$, é'])("in the schema %s, without polls", async (schema) => {
      const { pawl, url } = await open(schema);
      const worker = pawl.worker({ workflows: [greet], poll: Number.POSITIVE_INFINITY, lease: "1 hour" });
      await worker.start();
      const sql = await sqlCaller(kind, url, schema);
      const id = await sql.start("greet", '"Ada"', { idempotencyKey: "k" });
      expect(await sql.start("greet", '"Ada"', { idempotencyKey: "k" })).toBe(id);
      await until(async () => (await pawl.run(id).status()) === "waiting");
      await sql.signal(id, "greeting", '{"greeting": "Hello"}', { key: "once" });
      expect(await pawl.run(id).result()).toBe("Hello, Ada");
      await sql.signal(id, "greeting", "1", { key: "once" });
      expect((await refusalOf(sql.start("unknown"))).code).toBe("WORKFLOW_NOT_FOUND");
      expect((await pawl.verify()).differences).toEqual([]);
      await worker.stop();
    });

    test("two schemas of a database are separate", async () => {
      const { pawl, url } = await open("one");
      const other = await connect(url, { logger: silent, schema: "two" });
      await pawl.createWorkflow("greet");
      const sql = await sqlCaller(kind, url, "two");
      expect((await refusalOf(sql.start("greet", '"Ada"'))).code).toBe("WORKFLOW_NOT_FOUND");
      expect((await other.runs()).runs).toEqual([]);
      await other.close();
    });

    test("the search path and the string settings of the caller do not matter", async () => {
      const { pawl, url } = await open();
      await pawl.createWorkflow("greet");
      const sql = await sqlCaller(kind, url);
      await sql.query("CREATE SCHEMA evil");
      await sql.query("CREATE TABLE evil.pawl_runs (id int)");
      const impostors = { "to_json(text)": "text", "strpos(text, text)": "int", "clock_timestamp()": "timestamptz" };
      for (const [signature, type] of Object.entries(impostors))
        await sql.query(`CREATE FUNCTION evil.${signature} RETURNS ${type} LANGUAGE sql AS $$ SELECT NULL::${type} $$`);
      await sql.query("SET search_path = evil, pg_catalog");
      await sql.query("SET standard_conforming_strings = off");
      await sql.query("SET escape_string_warning = off");
      const id = await sql.start("greet", '{"a": "b\\\\c, d: \\"e\\"", "$pawl": 1}', { tags: ["a\\b"] });
      await sql.signal(id, "greeting", '"\\\\"');
      const info = await pawl.run(id).get();
      expect([info.input, info.tags]).toEqual([{ a: 'b\\c, d: "e"', $pawl: 1 }, ["a\\b"]]);
      expect((await pawl.verify()).differences).toEqual([]);
      // The settings of the caller are as they were.
      expect(await sql.query("SHOW search_path")).toEqual([{ search_path: "evil, pg_catalog" }]);
    });

    test("a hint is sent with the commit, and none after a rollback", async () => {
      const { pawl, url } = await open();
      await pawl.createWorkflow("greet");
      const listener = new pg.Client({ connectionString: url });
      await listener.connect();
      onTestFinished(() => listener.end());
      const payloads: unknown[] = [];
      listener.on("notification", ({ payload }) => payloads.push(JSON.parse(payload as string)));
      await listener.query(`LISTEN ${channelOf("public")}`);

      const sql = await sqlCaller(kind, url);
      await sql.query("BEGIN");
      const rolledBack = await sql.start("greet", "1");
      await sql.signal(rolledBack, "greeting");
      await sql.query("ROLLBACK");
      const id = await sql.start("greet", "2");
      await sql.signal(id, "greeting");
      await until(() => payloads.length >= 2);
      expect(payloads).toEqual([
        { hints: [{ kind: "ready", workflows: ["greet"] }] },
        { hints: [{ kind: "messages", runIds: [id] }] },
      ]);
    });

    test("a conflict that the caller's snapshot cannot see is a serialization failure, as for any insert", async () => {
      const { pawl, url } = await open();
      await pawl.createWorkflow("greet");
      const [first, second] = [await sqlCaller(kind, url), await sqlCaller(kind, url)];
      await first.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
      await first.query("SELECT 1 FROM pawl_runs");
      const id = await second.start("greet", "1", { idempotencyKey: "k" });
      await expect(first.start("greet", "1", { idempotencyKey: "k" })).rejects.toMatchObject({ code: "40001" });
      await first.query("ROLLBACK");
      expect(await first.start("greet", "1", { idempotencyKey: "k" })).toBe(id);
    });
  },
  ["postgres"] as const,
);
