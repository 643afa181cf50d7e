/** Which database a command uses, and what it does when that does not exist or is not up to date. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Folder, newFolder, workflows } from "./command-line.js";

/** The file that `migrate` creates tells which URL was used. */
const databases = (folder: Folder) => readdirSync(folder.path).filter((name) => name.endsWith(".db"));

test("--url takes precedence over PAWL_URL, PAWL_URL over the configuration file, and that over ./pawl.db", async () => {
  const folder = newFolder();
  await folder.text("migrate");
  expect(databases(folder)).toEqual(["pawl.db"]);
  folder.write("pawl.config.json", '{ "url": "sqlite:./config.db" }');
  await folder.text("migrate");
  const env = { PAWL_URL: "sqlite:./env.db" };
  expect((await folder.pawlWith({ env }, "migrate")).code).toBe(0);
  expect((await folder.pawlWith({ env }, "migrate", "--url", "sqlite:./option.db")).code).toBe(0);
  expect(databases(folder).sort()).toEqual(["config.db", "env.db", "option.db", "pawl.db"]);
});

test.each([
  ["pawl.config.ts", 'const url: string = "sqlite:./x.db";\nexport default { url };'],
  ["pawl.config.mjs", 'export default { url: "sqlite:./x.db" };'],
  ["pawl.config.js", 'module.exports = { url: "sqlite:./x.db" };'],
  ["pawl.config.json", '{ "url": "sqlite:./x.db" }'],
])("%s is read", async (name, text) => {
  const folder = newFolder();
  folder.write(name, text);
  expect(await folder.json("migrate")).toMatchObject({ database: "sqlite ./x.db" });
});

test.each([
  ["pawl.config.json", "{", /^pawl\.config\.json is not valid JSON: /],
  ["pawl.config.json", "[]", /^pawl\.config\.json must export an object by default/],
  ["pawl.config.mjs", "export const url = 1;", /^pawl\.config\.mjs must export an object by default/],
  [
    "pawl.config.json",
    '{ "ulr": "x" }',
    /^pawl\.config\.json has a setting "ulr", which does not exist; did you mean "url"\?$/,
  ],
  ["pawl.config.json", '{ "workflows": "a.ts" }', /^"workflows" in pawl\.config\.json must be a list of files\.$/],
  [
    "pawl.config.mjs",
    "export default { url: process.env.NOT_SET };",
    /^"url" in pawl\.config\.mjs is empty; is the environment variable set that it comes from\?$/,
  ],
  ["pawl.config.json", '{ "pooled": "yes" }', /^"pooled" in pawl\.config\.json must be true, false or "auto"\.$/],
  ["pawl.config.json", '{ "pool": 3 }', /^"pool" in pawl\.config\.json must be an object: \{ max, transactions \}\.$/],
  ["pawl.config.json", '{ "retention": true }', /^"retention" in pawl\.config\.json must be a duration\.$/],
  ["pawl.config.mjs", "throw new Error('not today');", /^pawl\.config\.mjs cannot be loaded: not today$/],
])("a bad %s (%s) is refused in one sentence", async (name, text, sentence) => {
  const folder = newFolder();
  folder.write(name, text);
  expect(await folder.error("runs")).toMatch(sentence);
});

test("connection settings in the configuration file apply only to its own database", async () => {
  const folder = newFolder();
  folder.write("pawl.config.json", '{ "url": "sqlite:./config.db", "pool": { "max": 2 } }');
  expect(await folder.error("migrate")).toMatch(/^`pool` is for PostgreSQL and MySQL/);
  await folder.text("migrate", "--url", "sqlite:./other.db");
  folder.write("pawl.config.json", '{ "listenUrl": "postgres://localhost/x" }');
  expect(await folder.error("migrate")).toMatch(/^`listenUrl` is for PostgreSQL/);
  expect(databases(folder)).toEqual(["other.db"]);
});

test("the configuration file sets the workflows and options of a worker", async () => {
  const folder = newFolder();
  folder.write(
    "pawl.config.mjs",
    `export default { workflows: [${JSON.stringify(workflows)}], name: "from-config", concurrency: 3, queues: ["echo"], lease: "20s" };`,
  );
  const worker = folder.begin(["worker"]);
  await worker.until("Worker from-config serves");
  const [record] = await folder.json("workers");
  expect(record).toMatchObject({ name: "from-config", leaseMs: 20_000, workflows: [{ name: "echo", version: "" }] });
  expect((await worker.stop()).code).toBe(0);
});

test("the configuration file sets the retention, and its variables may be empty when --url names the database", async () => {
  const folder = newFolder();
  folder.write("pawl.config.mjs", 'export default { url: process.env.NOT_SET, retention: "1s" };');
  await folder.text("migrate", "--url", folder.url);
  expect(await folder.error("runs", "--url", folder.url)).toMatch(/^The retention is at least a minute, not 1000 ms/);
});

test.each([
  ["runs"],
  ["show", "0123456"],
  ["start", "order"],
  ["workers"],
  ["verify"],
  ["migrate", "--status"],
  ["doctor"],
])("%s does not create a missing database", async (...args) => {
  const folder = newFolder();
  const { code, stdout, stderr } = await folder.pawl(...args);
  expect(code).toBe(1);
  expect(`${stdout}${stderr}`).toContain("There is no database ./pawl.db");
  expect(databases(folder)).toEqual([]);
});

test.each(["sqlite", "libsql", "file"])(
  "a read-only command does not create a file for a %s: URL either",
  async (scheme) => {
    const folder = newFolder();
    expect(await folder.error("runs", "--url", `${scheme}:./other.db`)).toMatch(
      /^There is no database \.\/other\.db; /,
    );
    expect(databases(folder)).toEqual([]);
    await folder.text("migrate", "--url", `${scheme}:./other.db`);
    expect(await folder.text("runs", "--url", `${scheme}:./other.db`)).toBe("No runs.\n");
  },
);

test("tables that are not up to date are refused, and the error names `migrate`", async () => {
  const folder = newFolder();
  folder.write("pawl.db", "");
  const sentence = await folder.error("runs");
  expect(sentence).toMatch(/^sqlite \.\/pawl\.db lacks migrations? 1.*; run: pawl migrate$/);
  const worker = await folder.error("worker", workflows, "--no-migrate");
  expect(worker).toBe(sentence);
});

test("a database that cannot be opened is reported in one sentence", async () => {
  const folder = newFolder();
  folder.write("pawl.db", "this is not a database, and it is long enough to be taken for one".repeat(20));
  expect(await folder.error("runs")).toContain("sqlite ./pawl.db");
  const url = `sqlite:${join(folder.path, "no", "such", "folder", "x.db")}`;
  expect(await folder.error("migrate", "--url", url)).toContain("does not exist; create it first");
  const nobody = "postgres://nobody@127.0.0.1:1/none";
  expect(await folder.error("runs", "--url", nobody)).toMatch(/ECONNREFUSED|refused/);
});
