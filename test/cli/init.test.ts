/** `init`: the files that it writes type-check, its SQL creates the tables, and its workflow runs to the end. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import Database from "better-sqlite3";
import { createConnection } from "mysql2/promise";
import { connect } from "pawl";
import pg from "pg";
import { afterAll, expect, test } from "vitest";
import { emptyDatabase, forEachStore, type StoreKind } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { splitAtDelimiters } from "../support/sql-scripts.js";
import { errorIn, Folder, newFolder } from "./command-line.js";
import { silent } from "./sample-runs.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The strictest settings of the compiler. */
const tsconfig = {
  compilerOptions: {
    target: "ES2022",
    module: "nodenext",
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    noImplicitOverride: true,
    noUnusedLocals: true,
    noUnusedParameters: true,
    verbatimModuleSyntax: true,
    noEmit: true,
    types: ["node"],
  },
  include: ["apps"],
};

/** An application in TypeScript. */
function application(folder: Folder, dependencies: readonly string[] = []): Folder {
  const names = ["typescript", "@types/node", "pawl", ...dependencies];
  folder.write(
    "package.json",
    JSON.stringify({ type: "module", dependencies: Object.fromEntries(names.map((name) => [name, "*"])) }),
  );
  return folder;
}

/** The files of all tests are type-checked together at the end, because most of the time of a check is its startup. */
const checked = new Folder();
afterAll(() => checked.remove());

function keepForCheck(folder: Folder, name: string): void {
  for (const file of ["pawl.config.ts", "workflows/first.ts"])
    checked.write(`apps/${name}/${file}`, written(folder, file));
}

const written = (folder: Folder, name: string) => readFileSync(join(folder.path, name), "utf8");

/** Applies the files as a team's own migration tool does. */
async function applyMigrations(url: string, texts: readonly string[]): Promise<void> {
  if (url.startsWith("sqlite:")) {
    const database = new Database(url.slice("sqlite:".length));
    for (const text of texts) database.exec(text);
    database.close();
  } else if (url.startsWith("mysql:")) {
    const connection = await createConnection({ uri: url, multipleStatements: true });
    for (const text of texts) for (const statement of splitAtDelimiters(text)) await connection.query(statement);
    await connection.end();
  } else {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    for (const text of texts) await client.query(text);
    await client.end();
  }
}

/** Runs the written workflow to its end, with tables that only the written SQL files have created. */
async function runWrittenWorkflow(
  folder: Folder,
  url: string,
  files: readonly { path: string }[],
  start: readonly string[],
) {
  const sql = files.filter(({ path }) => path.endsWith(".sql")).map(({ path }) => written(folder, path));
  await applyMigrations(url, sql);
  await (await connect(url, { migrate: false, logger: silent })).close();
  expect((await folder.json("migrate", "--status")).pending).toEqual([]);
  const worker = folder.begin(["worker", "--no-migrate"]);
  await worker.until("serves");
  const ended = await folder.pawl("start", ...start, "--wait", "--json");
  return { ended: JSON.parse(ended.stdout), said: (await worker.stop()).stderr };
}

interface Schema {
  readonly what: string;
  readonly kinds: readonly StoreKind[];
  readonly tables: readonly string[];
  /** The id of an existing row. */
  readonly id: string;
  readonly keyType: string;
  /** The type of the id in the generated code. */
  readonly idType: string;
}

const uuid = "0198c2f4-6d3e-7b1a-9c55-3f2a1b0c9d8e";
const schemas: readonly Schema[] = [
  {
    what: "bigint keys",
    kinds: ["postgres", "mysql"],
    tables: [
      "CREATE TABLE users (id bigint PRIMARY KEY, name varchar(100))",
      "CREATE TABLE order_items (id bigint PRIMARY KEY)",
      "CREATE TABLE tokens (id char(36) PRIMARY KEY)",
      "CREATE TABLE members_of (user_id bigint, team_id bigint, PRIMARY KEY (user_id, team_id))",
      "INSERT INTO users VALUES (9007199254740993, 'Ada')",
    ],
    id: "9007199254740993",
    keyType: "bigint",
    idType: "bigint",
  },
  {
    what: "UUID keys",
    kinds: ["postgres", "mysql"],
    tables: [
      "CREATE TABLE accounts (account_id uuid PRIMARY KEY)",
      "CREATE TABLE letters (id uuid PRIMARY KEY)",
      "CREATE TABLE counters (id integer PRIMARY KEY)",
      `INSERT INTO accounts VALUES ('${uuid}')`,
    ],
    id: uuid,
    keyType: "uuid",
    idType: "string",
  },
  {
    what: "integer keys",
    kinds: ["sqlite"],
    tables: ["CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)", "INSERT INTO people VALUES (7, 'Ada')"],
    id: "7",
    keyType: "integer",
    idType: "number",
  },
];

forEachStore(
  (kind) => {
    for (const { what, tables, id, keyType, idType } of schemas.filter(({ kinds }) => kinds.includes(kind))) {
      test.concurrent(`in an application with ${what}, the written files run`, async ({ onTestFinished }) => {
        const database = await emptyDatabase(kind);
        onTestFinished(() => database.drop());
        const sql = await rawSql(database.url);
        // MariaDB has a UUID type, MySQL has not.
        for (const statement of tables)
          await sql.query(kind === "mysql" ? statement.replace(" uuid ", " char(36) ") : statement);
        const folder = application(newFolder(onTestFinished), ["pg", "mysql2", "better-sqlite3"]);
        folder.write(".env", `# where it is\nDATABASE_URL="${database.url}"\n`);

        const found = await folder.json("init");
        expect(found).toMatchObject({
          database: { kind, from: "DATABASE_URL in .env" },
          keys: { type: keyType },
          tablesError: null,
        });
        const [config, workflow] = found.files.map(({ path }: { path: string }) => path);
        expect([config, workflow]).toEqual(["pawl.config.ts", "workflows/first.ts"]);
        expect(written(folder, config)).not.toContain(database.url);
        expect(written(folder, config).includes("// listenUrl: process.env.")).toBe(kind === "postgres");
        expect(written(folder, workflow)).toContain(`readonly id: ${idType};`);
        keepForCheck(folder, `${kind}-${keyType}`);

        const [, name, type] = /start (\w+) --hero (\w+):/.exec(found.next.at(-1)) ?? [];
        const start = [name as string, "--hero", `${type}:${id}`];
        const { ended, said } = await runWrittenWorkflow(folder, database.url, found.files, start);
        expect(ended.status).toBe("completed");
        expect(said).toContain(`${type} ${id} is followed up`);

        // The runs are about rows with the application's own keys.
        const [row] = await sql.query(`SELECT * FROM pawl_${(type as string).toLowerCase()}_runs`);
        expect(row).toMatchObject({ run_id: ended.id, workflow: name, status: "completed" });
        if (kind === "mysql") {
          const columns = await sql.query(
            `SELECT column_name AS name, data_type AS type FROM information_schema.columns WHERE table_schema = DATABASE()
              AND table_name = 'pawl_${(type as string).toLowerCase()}_runs' AND column_name IN ('run_id', 'workflow', 'status')`,
          );
          // Clients print binary values as bytes.
          expect(columns.map((one) => one.type)).toEqual(["varchar", "varchar", "varchar"]);
        }
        await sql.close();
      });
    }
  },
  ["postgres", "mysql", "sqlite"],
);

forEachStore(
  (kind) => {
    test.concurrent("in an application with migrations, its own tool creates the tables, and workers do not migrate", async ({
      onTestFinished,
    }) => {
      const database = await emptyDatabase(kind);
      onTestFinished(() => database.drop());
      const folder = application(newFolder(onTestFinished), ["pg", "mysql2", "better-sqlite3", "esbuild"]);
      folder.write(".env", `DATABASE_URL="${database.url}"\n`);
      folder.write("migrations/0007_settings.sql", "CREATE TABLE settings (name varchar(20));");
      await applyMigrations(database.url, [written(folder, "migrations/0007_settings.sql")]);

      const found = await folder.json("init");
      expect(found.next[0]).toBe("# apply migrations/0008_pawl_tables.sql with the tool that applies your migrations");
      expect(found.next.slice(1)).toEqual(["npx pawl worker", expect.stringContaining("npx pawl start hello")]);
      expect(written(folder, "pawl.config.ts")).toContain("  migrate: false,\n");
      keepForCheck(folder, `${kind}-own-tool`);
      expect((await folder.json("init")).files.map(({ action }: any) => action)).toEqual(Array(3).fill("unchanged"));

      expect(await folder.error("worker")).toMatch(/ lacks migration 1; run: pawl migrate$/);
      await applyMigrations(database.url, [written(folder, "migrations/0008_pawl_tables.sql")]);
      const worker = folder.begin(["worker"]);
      await worker.until("serves hello");
      expect((await folder.json("start", "hello", '{"name": "Ada"}', "--wait")).output).toBe("Hello, Ada");
      await worker.stop();
    });
  },
  ["postgres", "mysql", "sqlite"],
);

test("the written workflow cancels a run about a row that no longer exists", async () => {
  const folder = application(newFolder());
  const sql = await rawSql(`sqlite:${join(folder.path, "app.db")}`);
  await sql.query("CREATE TABLE orders (id TEXT PRIMARY KEY)");
  await sql.close();
  await folder.text("init", "--url", "sqlite:./app.db");
  const worker = folder.begin(["worker"]);
  await worker.until("serves OrderFollowUp");
  const ended = await folder.pawl("start", "OrderFollowUp", "--hero", "Order:nobody", "--wait", "--json");
  expect(JSON.parse(ended.stdout)).toMatchObject({ status: "canceled", error: { message: "the row was deleted" } });
  await worker.stop();
});

test("in an empty folder, init chooses SQLite without asking", async () => {
  const folder = newFolder();
  const text = await folder.text("init");
  expect(text).toMatch(/^Database: sqlite:\.\/pawl\.db \(default\)\.\n/);
  expect(text).toMatch(
    /^written {4}pawl\.config\.ts\nwritten {4}workflows\/first\.ts\nwritten {4}migrations\/0001_pawl_tables\.sql$/m,
  );
  expect(text).toMatch(
    /^Next\n {2}npm install pawl.*\n( {2}npm install --save-dev esbuild\n)? {2}npx pawl worker\n {2}npx pawl start hello /m,
  );
  // Older versions of Node need a tool to read TypeScript.
  expect(text.includes("esbuild")).toBe(!("typescript" in process.features && process.features.typescript));
  expect(folder.has("pawl.db")).toBe(false);
  keepForCheck(folder, "empty");
  const files = [{ path: "migrations/0001_pawl_tables.sql" }];
  const { ended } = await runWrittenWorkflow(folder, folder.url, files, ["hello", '{"name": "Ada"}']);
  expect(ended).toMatchObject({ status: "completed", output: "Hello, Ada" });
});

test("an application without TypeScript gets JavaScript, in the folder that is named", async () => {
  const folder = newFolder();
  folder.write("app/package.json", '{ "dependencies": { "pawl": "*", "better-sqlite3": "*" } }');
  const text = await folder.text("init", "app");
  expect(text).toMatch(/^Next\n {2}cd app\n {2}npx pawl worker\n/m);
  for (const name of ["pawl.config.mjs", "workflows/first.mjs"]) expect(folder.has(`app/${name}`)).toBe(true);
  const inApp = await folder.pawl("graph", "app/workflows/first.mjs");
  expect(errorIn(inApp)).toBe('"hello" cannot be drawn: the steps of a function are known only as it runs.');
  const fresh = await folder.json("init", "new/one");
  expect(fresh).toMatchObject({ folder: join(folder.path, "new/one"), tablesError: null });
  expect(folder.has("new/one/pawl.config.ts")).toBe(true);
});

test("nothing is overwritten without --force, and --dry-run writes nothing", async () => {
  const folder = newFolder();
  expect((await folder.json("init", "--dry-run")).files.map(({ action }: any) => action)).toEqual(
    Array(3).fill("would be written"),
  );
  expect(folder.has("pawl.config.ts")).toBe(false);
  folder.write("workflows/first.ts", "// mine\n");
  expect(await folder.text("init")).toContain(
    "kept       workflows/first.ts  (its content differs; --force overwrites it)\n",
  );
  expect(written(folder, "workflows/first.ts")).toBe("// mine\n");
  expect((await folder.json("init")).files.map(({ action }: any) => action)).toEqual([
    "unchanged",
    "kept",
    "unchanged",
  ]);
  expect((await folder.json("init", "--force")).files[1]).toEqual({ path: "workflows/first.ts", action: "written" });
  expect(written(folder, "workflows/first.ts")).toContain("A first workflow");
});

test("an existing configuration of another format is kept, and migrations continue the application's numbering", async () => {
  const folder = newFolder();
  folder.write("pawl.config.json", '{ "url": "sqlite:./other.db" }');
  folder.write("migrations/20250101120000_users.sql", "");
  folder.write("migrations/readme.md", "");
  const { files, next } = await folder.json("init", "--force");
  expect(next.slice(0, 2)).toEqual([
    "# apply migrations/20250101120001_pawl_tables.sql with the tool that applies your migrations",
    "# set `migrate: false` in pawl.config.json",
  ]);
  expect(files.map(({ path, action }: any) => `${path} ${action}`)).toEqual([
    "pawl.config.json unchanged",
    "workflows/first.ts written",
    "migrations/20250101120001_pawl_tables.sql written",
  ]);
  expect((await folder.json("init")).files.at(-1)).toEqual({
    path: "migrations/20250101120001_pawl_tables.sql",
    action: "unchanged",
  });
});

test("an unreachable database does not stop init, and a password is never written to a file", async () => {
  const folder = application(newFolder(), ["pg"]);
  const url = "postgres://me:secret@127.0.0.1:1/app";
  const text = await folder.text("init", "--url", url);
  expect(text).toMatch(
    /^Database: postgres:\/\/me:…@127\.0\.0\.1:1\/app \(--url\)\.\nIts tables were not read: .*ECONNREFUSED/,
  );
  expect(text).toContain("\n  export DATABASE_URL=");
  expect(text).not.toContain("secret");
  for (const name of ["pawl.config.ts", "workflows/first.ts", "migrations/0001_pawl_tables.sql"])
    expect(written(folder, name)).not.toContain("secret");
  keepForCheck(folder, "password");
  expect(await folder.error("runs")).toBe(
    '"url" in pawl.config.ts is empty; is the environment variable set that it comes from?',
  );
});

test("init refuses invalid arguments in one sentence", async () => {
  const folder = newFolder();
  folder.write("file", "");
  expect(await folder.error("init", "file")).toBe("file is not a folder.");
  const { code, stderr } = await folder.pawlWith({ env: { DATABASE_URL: "mongodb://localhost/app" } }, "init");
  expect([code, stderr]).toEqual([
    1,
    'DATABASE_URL names a database that Pawl does not know ("mongodb:"); give another: pawl init --url sqlite:./pawl.db\n',
  ]);
  expect(folder.has("pawl.config.ts")).toBe(false);
});

test("migrate --sql prints the same SQL that init writes, without a database", async () => {
  const folder = newFolder();
  await folder.text("init", "--url", "mysql://nobody@127.0.0.1:1/app");
  const sql = await folder.text("migrate", "--sql", "--url", "mysql:");
  expect(sql.trim()).toBe(written(folder, "migrations/0001_pawl_tables.sql").trim());
  expect(await folder.json("migrate", "--sql", "--url", "postgres:", "--schema", "jobs")).toMatchObject([
    { version: 1, name: "tables", sql: expect.stringContaining('CREATE SCHEMA IF NOT EXISTS "jobs";') },
  ]);
  expect(await folder.error("migrate", "--sql", "--url", "memory:")).toBe(
    'There is no SQL for "memory:"; there is for postgres, mysql and sqlite.',
  );
  expect(await folder.error("migrate", "--sql", "--status")).toBe("Give --sql or --status, not both.");
});

test("all written files type-check against the installed package", async () => {
  mkdirSync(join(checked.path, "node_modules/@types"), { recursive: true });
  symlinkSync(root, join(checked.path, "node_modules/pawl"));
  symlinkSync(join(root, "node_modules/@types/node"), join(checked.path, "node_modules/@types/node"));
  checked.write("package.json", '{ "type": "module" }');
  checked.write("tsconfig.json", JSON.stringify(tsconfig));
  const compiler = join(root, "node_modules/.bin/tsc");
  const { stdout } = await promisify(execFile)(compiler, ["-p", checked.path, "--listFiles"]).catch((error) => error);
  expect(stdout).not.toContain("error TS");
  expect(stdout).toContain("apps/empty/workflows/first.ts");
});
