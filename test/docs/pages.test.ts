/** The pages in docs/ and the README are programs: every TypeScript block compiles and behaves as the page says. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, onTestFailed, test } from "vitest";
import { type OwnServer, ownSqld } from "../../scripts/servers.mjs";
import { isLeftOut } from "../support/databases.js";
import { currentBlock, hasCode, type Page, programOf, type ShowCheck } from "./program.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const docs = join(root, "docs");
/** The README of the repository is one of the pages; the README of docs/ is only a list of links. */
const pathOf = (name: string) => (name === "README.md" ? name : `docs/${name}`);
const pages: Page[] = readdirSync(docs)
  .filter((name) => name.endsWith(".md"))
  .map((name) => ({ name, text: readFileSync(join(root, pathOf(name)), "utf8") }))
  .filter(hasCode);

// The folder is within the repository, so that "pawl" and "vitest" resolve, but where no other tool looks.
const cache = join(root, "node_modules/.cache");
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(join(cache, "pawl-docs-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const shows: ShowCheck = (line, values, samples) =>
  expect(values, `the sample output in line ${line}`).toEqual(samples);
Object.assign(globalThis, { shows });

const fileOf = (page: Page) => join(folder, page.name.replace(/\.md$/, ".mts"));
for (const page of pages) writeFileSync(fileOf(page), programOf(page));

// The page about libSQL connects to the URL of its readers' databases.
const withoutServer = (page: Page) => page.name === "libsql.md" && isLeftOut("sqld");
let turso: OwnServer | undefined;
beforeAll(async () => {
  if (isLeftOut("sqld")) return;
  turso = await ownSqld();
  process.env.TURSO_DATABASE_URL = turso.url;
});
afterAll(async () => {
  delete process.env.TURSO_DATABASE_URL;
  await turso?.remove();
});

test("the guides are among the executed pages", () => {
  const guides = [
    ...["README", "quick-start", "function-style", "class-style", "graph-style", "dynamic-graphs", "resumable-steps"],
    ...[
      "testing",
      "deploying",
      "tenancy",
      "operating",
      "debugging",
      "telemetry",
      "coming-from",
      "http",
      "http-security",
      "dashboard",
    ],
  ];
  expect(pages.map(({ name }) => name)).toEqual(expect.arrayContaining(guides.map((guide) => `${guide}.md`)));
});

test("a code block that no test would run is refused", () => {
  const page = { name: "some.md", text: "Prose.\n\n```js\nlies();\n```\n" };
  expect(() => programOf(page)).toThrow('some.md:3: no test runs a block of "js"');
  expect(() => programOf({ ...page, text: "```ts\n" })).toThrow("some.md ends within a block of code");
});

test("sample output behind console.log is checked", () => {
  const page = { name: "some.md", text: 'Prose.\n\n```ts\nconsole.log(1 + 1, "a"); // 2, "a"\n```\n' };
  expect(programOf(page).split("\n")[3]).toContain('.shows(4, [1 + 1, "a"], [2, "a"]);');
  expect(() => shows(4, [1 + 1], [3])).toThrow("the sample output in line 4");
});

const run = pages.filter((page) => !withoutServer(page));
test.each(run.map((page) => [pathOf(page.name), page] as const))("%s behaves as it says", async (path, page) => {
  onTestFailed(() => console.error(`The last block that was begun is the one at ${path}:${currentBlock.line}`));
  // `connect()` without arguments creates its database file in the working directory.
  process.chdir(folder);
  try {
    await import(fileOf(page));
  } catch (error) {
    throw inThePage(error, page);
  } finally {
    process.chdir(root);
  }
});

test("all pages compile", async () => {
  const config = join(folder, "tsconfig.json");
  writeFileSync(config, JSON.stringify({ extends: join(root, "tsconfig.json"), include: ["*.mts"] }));
  const tsc = join(root, "node_modules/.bin/tsc");
  const complaints = await promisify(execFile)(process.execPath, [tsc, "-p", config, "--pretty", "false"], {
    cwd: folder,
  }).then(
    () => "",
    ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}`.replaceAll(".mts(", ".md("),
  );
  expect(complaints).toBe("");
});

/** Line numbers are those of the page, so a failure points to the page. */
function inThePage(error: unknown, page: Page): unknown {
  if (error instanceof Error) error.stack = error.stack?.replaceAll(fileOf(page), join(root, pathOf(page.name))) ?? "";
  return error;
}
