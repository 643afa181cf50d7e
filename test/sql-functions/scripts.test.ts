/** The script of `pawl migrate --sql`, run with the command line of the database, creates what `pawl migrate` creates. */
import { connect } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { migrationSql } from "../../src/cli/migration-sql.js";
import { emptyDatabase, forEachStore, openStore } from "../support/databases.js";
import { type Row, rawSql } from "../support/raw-sql.js";
import { runScript, splitAtDelimiters } from "../support/sql-scripts.js";
import { silent } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";
import { sqlCaller, sqlKinds } from "./sql-caller.js";

forEachStore((kind) => {
  const newDatabase = async () => {
    const database = await emptyDatabase(kind);
    onTestFinished(() => database.drop());
    return database.url;
  };
  const script = (url: string, schema?: string) =>
    migrationSql(url, schema)
      .map(({ sql }) => sql)
      .join("\n");

  /** The definitions of all functions or procedures, without comments, which the command line of MySQL may leave out. */
  const routinesOf = async (url: string) => {
    const sql = await rawSql(url);
    const rows = await sql.query(
      kind === "postgres"
        ? "SELECT proname AS name, pg_get_functiondef(oid) AS text FROM pg_proc WHERE proname LIKE 'pawl%' ORDER BY 1"
        : `SELECT r.routine_name AS name, r.routine_definition AS text, r.security_type AS security,
             (SELECT GROUP_CONCAT(p.parameter_mode, ' ', p.parameter_name, ' ', p.dtd_identifier, ' ', p.character_set_name ORDER BY p.ordinal_position)
               FROM information_schema.parameters p WHERE p.specific_schema = r.routine_schema AND p.specific_name = r.specific_name) AS parameters
           FROM information_schema.routines r WHERE r.routine_schema = DATABASE() ORDER BY 1`,
    );
    await sql.close();
    return rows.map((row): Row => ({ ...row, text: String(row.text).replace(/--.*$/gm, "").replace(/\s+/g, " ") }));
  };

  test("the functions are the same, and they work", async () => {
    const [scripted, migrated] = [await newDatabase(), await newDatabase()];
    await runScript(scripted, script(scripted));
    const store = await openStore(kind, migrated);
    await store.migrate();
    await store.close();
    const routines = await routinesOf(scripted);
    expect(routines.map(({ name }) => name)).toEqual(expect.arrayContaining(["pawl_signal", "pawl_start"]));
    expect(routines).toEqual(await routinesOf(migrated));

    const pawl = await connect(scripted, { migrate: false, logger: silent });
    await pawl.createWorkflow("order");
    const sql = await sqlCaller(kind, scripted);
    const id = await sql.start("order", '{"text": "é \\\\ \\"", "$pawl": [1]}', { idempotencyKey: "k" });
    await sql.signal(id, "approved", '"\\\\"');
    expect((await pawl.run(id).get()).input).toEqual({ text: 'é \\ "', $pawl: [1] });
    expect((await pawl.verify()).differences).toEqual([]);
    await pawl.close();
  });

  if (kind === "postgres") {
    test("with a schema, everything is in it", async () => {
      const url = await newDatabase();
      await runScript(url, script(url, 'odd "name" $$'));
      const sql = await rawSql(url);
      expect(
        await sql.query(
          "SELECT DISTINCT n.nspname AS schema FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.proname LIKE 'pawl%'",
        ),
      ).toEqual([{ schema: 'odd "name" $$' }]);
      await sql.close();
    });
  } else {
    test("a script that was cut short can be run again", async () => {
      const url = await newDatabase();
      const whole = script(url);
      const cut = whole.slice(0, whole.indexOf("CREATE PROCEDURE pawl_internal_tags"));
      await runScript(url, cut);
      await runScript(url, whole);
      expect((await routinesOf(url)).length).toBeGreaterThan(10);
    });

    test("a session with any settings creates the same procedures", async () => {
      const url = await newDatabase();
      const settings = [
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT,IGNORE_SPACE';",
        "SET NAMES latin1;",
        "SET sql_mode = '';",
      ];
      for (const setting of settings) {
        await runScript(url, `DROP TABLE IF EXISTS pawl_migrations;\n${setting}\n${script(url)}`);
        const pawl = await connect(url, { migrate: false, logger: silent });
        await pawl.createWorkflow("order");
        const sql = await sqlCaller(kind, url);
        const text = '{"text": "é \u{1f600} \\\\ \\" \\u00e9 \\n", "$pawl": [1, {"$pawl": 2}]}';
        const id = await sql.start("order", text, { tags: ["é\\"], by: "é", startAt: "2030-01-31T09:00:00+01:00" });
        const { input, tags, startedBy } = await pawl.run(id).get();
        expect([input, tags, startedBy], setting).toEqual([JSON.parse(text), ["é\\"], { by: "é", reason: null }]);
        expect((await errorOf(sql.start("order", "1."))).errno, setting).toBe(50_422);
        expect((await errorOf(sql.start("order", "1", { tags: ["a\n"] }))).errno, setting).toBe(50_400);
        expect((await errorOf(sql.start("order", "1", { startAt: "2030-02-30T09:00:00Z" }))).errno).toBe(50_400);
        await pawl.close();
      }
    });

    test("all procedures are in one part, which a tool that does not know DELIMITER may leave out", async () => {
      const url = await newDatabase();
      const whole = script(url);
      expect(whole.split(/^DELIMITER/m)).toHaveLength(3);
      const parts = splitAtDelimiters(whole);
      await runScript(url, `${parts[0]}${parts.at(-1)}`);
      await (await connect(url, { migrate: false, logger: silent })).close();
      expect(await routinesOf(url)).toEqual([]);
    });
  }
}, sqlKinds);
