/** User code that ends its process, blocks it, or leaves unhandled rejections. Each worker is a process of its own. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, type Pawl } from "pawl";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type TestDatabase, testDatabase } from "../support/databases.js";
import { programFile } from "../support/program-file.js";
import { silent } from "../support/virtual-worlds.js";

const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

let database: TestDatabase;
let folder: string;
let pawl: Pawl;
const children = new Set<ChildProcess>();

beforeEach(async () => {
  if (!existsSync(built))
    throw new Error("The library is not built: run `npm test`, or `npm run build` before vitest.");
  database = await testDatabase("sqlite");
  folder = mkdtempSync(join(tmpdir(), "pawl-hostile-"));
  writeFileSync(join(folder, "ledger"), "");
  pawl = await connect(database.url, { logger: silent });
});

afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
  await pawl.close();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function worker(): Promise<{ child: ChildProcess; exited: Promise<number | null> }> {
  const child = fork(programFile("bad-input/programs/hostile"), [database.url, join(folder, "ledger")], {
    execArgv: [],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  children.add(child);
  const exited = once(child, "exit").then(([code]) => code as number | null);
  await once(child, "message");
  return { child, exited };
}

const ledger = () => readFileSync(join(folder, "ledger"), "utf8").trim().split("\n");

test("a run whose step calls process.exit is recovered by another process, which repeats only that step", async () => {
  const first = await worker();
  const run = await pawl.workflow<void, string>("exits").trigger();
  expect(await first.exited).toBe(3);
  await worker();
  expect(await run.result({ timeout: "100s" })).toBe("survived");
  expect(ledger()).toEqual(["before", "exit", "exit"]);
  expect((await pawl.verify()).differences).toEqual([]);
});

test("an exception in a timer ends its process, and another process recovers the run", async () => {
  const first = await worker();
  const run = await pawl.workflow<void, string>("throws_later").trigger();
  await first.exited;
  await worker();
  expect(await run.result({ timeout: "100s" })).toBe("survived");
});

test("an unhandled rejection ends its process, as is usual in Node, and no run is lost", async () => {
  const { exited } = await worker();
  const run = await pawl.workflow<void, string>("rejects").trigger();
  expect(await exited).toBe(1);
  await worker();
  expect(await run.result({ timeout: "100s" })).toBe("survived");
});

test.each([
  ["a step that fails before its promise is awaited", "late"],
  ["a child that fails before it is awaited", "late_child"],
  ["a retryAfter that is not a number", "nonsense"],
])("%s does not end the worker process", async (_what, name) => {
  const { child, exited } = await worker();
  const run = await pawl.workflow<void, string>(name).trigger();
  const ended = await Promise.race([
    run.result({ timeout: "100s" }),
    exited.then((code) => `the worker exited with ${code}`),
  ]);
  expect(ended).toBe("survived");
  expect(child.exitCode).toBeNull();
});

test("a step that blocks the event loop for longer than the lease delays other runs only temporarily", async () => {
  await worker();
  const run = await pawl.workflow<void, string>("blocks").trigger();
  const other = await pawl.workflow<void, string>("fine").trigger();
  expect(await run.result({ timeout: "100s" })).toBe("survived");
  expect(await other.result({ timeout: "100s" })).toBe("fine");
  expect((await pawl.verify()).differences).toEqual([]);
});
