/**
 * The published package: everything that its pages link to exists, and its examples run in a project that installs it.
 */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installPackage } from "../support/installed-package.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "pawl-package-"));
const project = join(folder, "project");
const installed = join(project, "node_modules/pawl");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => installPackage(folder, project));

function pagesIn(path: string): string[] {
  return readdirSync(path, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md"));
}

test("the pages have no dead links", () => {
  const dead: string[] = [];
  for (const page of pagesIn(installed)) {
    const text = readFileSync(join(installed, page), "utf8").replace(/```[\s\S]*?```/g, "");
    for (const [, link = ""] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(?:https?:|mailto:|#)/.test(link)) continue;
      const target = normalize(join(dirname(page), link.split("#")[0] as string));
      if (!existsSync(join(installed, target))) dead.push(`${page}: ${link}`);
    }
  }
  expect(pagesIn(installed).length).toBeGreaterThan(15);
  expect(dead).toEqual([]);
});

test("package.json has no scripts and no development dependencies, and every exported file exists", () => {
  const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  expect(manifest).not.toHaveProperty("scripts");
  expect(manifest).not.toHaveProperty("devDependencies");
  const named = [manifest.bin.pawl, ...Object.values<any>(manifest.exports).flatMap((one) => one.default ?? one)];
  expect(named.filter((file) => !existsSync(join(installed, file)))).toEqual([]);
  expect(readdirSync(installed, { recursive: true, encoding: "utf8" }).filter((file) => /\.test\./.test(file))).toEqual(
    [],
  );
});

test("the examples compile in a project that installs the package, and the demo runs", async () => {
  cpSync(join(installed, "examples"), join(project, "examples"), { recursive: true });
  const page = readFileSync(join(project, "examples/README.md"), "utf8");
  const [, removed = ""] = /^rm -r (.*?) +#/m.exec(page) ?? [];
  for (const one of removed.split(" ")) rmSync(join(project, one), { recursive: true });
  const [, compile = ""] = /^npx (tsc .*)$/m.exec(page) ?? [];
  const [, start = ""] = /^node (.*)$/m.exec(page) ?? [];
  const [tool, ...args] = compile.split(" ");
  expect(tool).toBe("tsc");
  const files = args.filter((one) => !one.includes("*"));
  const sources = readdirSync(join(project, "examples"), { recursive: true, encoding: "utf8" })
    .filter((file) => /^[^/\\]+[/\\][^/\\]+\.ts$/.test(file))
    .map((file) => join("examples", file));
  const compiler = [join(root, "node_modules/typescript/bin/tsc"), ...files, ...sources];
  const { stdout: said } = await run(process.execPath, compiler, { cwd: project }).catch((error) => error);
  expect(said).toBe("");
  const { stdout } = await run(process.execPath, [start], { cwd: project, timeout: 300_000 });
  expect(stdout).toMatch(/killed|SIGKILL/i);
}, 300_000);

test("the dashboard is in the package, with its licences and without its sources", () => {
  const folder = join(installed, "dist/dashboard");
  const listed = JSON.parse(readFileSync(join(folder, "assets.json"), "utf8")) as string[];
  expect(listed).toEqual(expect.arrayContaining(["index.html", "licenses.md"]));
  expect(listed.filter((file) => !existsSync(join(folder, file)))).toEqual([]);
  expect(existsSync(join(installed, "dashboard"))).toBe(false);
});

test("the command line serves an example", async () => {
  const { stdout } = await run(
    process.execPath,
    [join(installed, "dist/cli/main.js"), "graph", "examples/premium/premium.ts"],
    { cwd: project },
  );
  expect(stdout).toMatch(/^flowchart TD/);
});
