/** Tests of several processes on one file, and of processes that are killed, with SQLite and with libSQL. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { sized } from "../../../test/support/effort.js";
import type { Store } from "../contract/store.js";
import { loadLibsql } from "../libsql/driver.js";
import { openLibsql } from "../libsql/index.js";
import { loadDriver } from "./driver.js";
import { openSqlite } from "./index.js";

const root = resolve(import.meta.dirname, "../../..");
const folder = mkdtempSync(join(tmpdir(), "pawl-processes-"));
const children = new Set<ChildProcess>();
let files = 0;
const newFile = () => join(folder, `${++files}.db`);

beforeAll(() => {
  // The child processes are plain Node, which runs no TypeScript.
  if (!existsSync(join(root, "dist/index.js")))
    throw new Error("The library is not built: run `npm test`, or `npm run build` before vitest.");
  symlinkSync(join(root, "dist"), join(folder, "pawl"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
});

afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Both libraries under the same names, here and in the child processes. */
const libraries = {
  sqlite: { open: openSqlite, load: loadDriver, names: { open: "openSqlite", load: "loadDriver" } },
  libsql: { open: openLibsql, load: loadLibsql, names: { open: "openLibsql", load: "loadLibsql" } },
};

const importsOf = (name: keyof typeof libraries) => `
  import { writeSync } from "node:fs";
  import { ${libraries[name].names.open} as open } from "./pawl/store/${name}/index.js";
  import { ${libraries[name].names.load} as load } from "./pawl/store/${name}/driver.js";
  import { batch, event, newRun, transition, workerInfo } from "./pawl/testing/store-suite/builders.js";
  const print = (text) => writeSync(1, text + "\\n");
`;

/** Runs a script in a child process; `lines` contains what it has printed so far. */
function runScript(name: string, script: string, ...args: string[]) {
  const path = join(folder, `${name}.mjs`);
  // Written only once: a process that starts during another write would read an empty file and exit without an error.
  if (!existsSync(path)) writeFileSync(path, script);
  const child = spawn(process.execPath, [path, ...args], { cwd: folder, stdio: ["pipe", "pipe", "pipe"] });
  children.add(child);
  const lines: string[] = [];
  let errors = "";
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal, errors }));
  return { child, lines, ended };
}

async function waitUntil(condition: () => boolean, timeoutMs = 100_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`The condition was not met within ${timeoutMs} ms.`);
    await new Promise((tick) => setTimeout(tick, 2));
  }
}

const committer = `
  const store = await open(process.argv[2]);
  await store.migrate();
  const fence = await store.registerWorker(workerInfo());
  const runs = Array.from({ length: 20 }, () => newRun({ due: { kind: "owned" } }));
  await store.commit(batch(fence, [], runs));
  for (let after = 0; ; after += 1) {
    for (let from = 0; from < runs.length; from += 5) {
      const part = runs.slice(from, from + 5);
      const child = newRun();
      const moves = part.map((run) => transition(run.id, { afterSeq: after, events: [event("step", { data: "x".repeat(2000) })] }));
      const result = await store.commit(batch(fence, moves, [child]));
      if (result.kind !== "committed") throw new Error(JSON.stringify(result));
      print([after + 1, child.id, ...part.map((run) => run.id)].join(" "));
    }
  }
`;

const killedDuringMigration = `
  const { Database } = await load();
  const { exec } = Database.prototype;
  const store = await open(process.argv[2]);
  let statementsLeft = Number(process.argv[3]);
  Database.prototype.exec = function (sql) {
    if (statementsLeft-- === 0) process.kill(process.pid, "SIGKILL");
    return exec.call(this, sql);
  };
  await store.migrate();
`;

const writerRounds = sized(25, 150);

const busyWriter = `
  const store = await open(process.argv[2], { onWarning: (message) => print(message) });
  await store.migrate();
  const fence = await store.registerWorker(workerInfo());
  for (let round = 0; round < ${writerRounds}; round += 1) {
    const runs = Array.from({ length: 5 }, () => newRun({ workflow: "shared" }));
    await store.commit(batch(null, [], runs));
    const { tasks } = await store.claim({ fence, routes: [{ workflow: "shared", version: "" }], limit: 5, limitPerRoute: 5 });
    const moves = tasks.map(({ run }) => transition(run.id, { events: [event("step")] }));
    const result = await store.commit(batch(fence, moves));
    if (result.kind !== "committed") throw new Error(JSON.stringify(result));
    for (const { run } of tasks) print(run.id);
  }
  await store.close();
`;

const starter = `
  const store = await open(process.argv[2]);
  print("ready");
  for await (const _ of process.stdin) {
    await store.commit(batch(null, [], [newRun()]));
    print("started");
  }
  await store.close();
`;

const idle = `
  const store = await open(process.argv[2]);
  await store.migrate();
  store.watch(() => {});
  await store.commit(batch(null, [], [newRun()]));
`;

describe.each(["sqlite", "libsql"] as const)("%s", (name) => {
  const library = libraries[name];
  const urlOf = (file: string) => `${name}:${file}`;
  const open = (file: string) => library.open(urlOf(file));
  const run = (script: string, code: string, file: string, ...args: string[]) =>
    runScript(`${name}-${script}`, importsOf(name) + code, urlOf(file), ...args);

  async function expectIntegrity(file: string): Promise<void> {
    const { Database } = await library.load();
    const database = new Database(file);
    expect(database.prepare("PRAGMA integrity_check").all()).toMatchObject([{ integrity_check: "ok" }]);
    database.close();
  }

  test("acknowledged commits survive a kill in the middle of later commits", async () => {
    const file = newFile();
    let acknowledged = 0;
    for (let round = 0; round < sized(4, 8); round += 1) {
      const { child, lines, ended } = run("committer", committer, file);
      const killedAfter = 15 + Math.floor(Math.random() * 35);
      await waitUntil(() => lines.length >= killedAfter);
      child.kill("SIGKILL");
      expect(await ended).toMatchObject({ signal: "SIGKILL", errors: "" });
      await expectAcknowledged(file, lines);
      acknowledged += lines.length;
    }
    await expectIntegrity(file);
    expect(acknowledged).toBeGreaterThan(50);
  });

  async function expectAcknowledged(file: string, lines: readonly string[]): Promise<void> {
    const store = await open(file);
    const lastSeqByRun = new Map<string, number>();
    const children: string[] = [];
    for (const line of lines) {
      const [seq, child, ...runs] = line.split(" ") as [string, string, ...string[]];
      children.push(child);
      for (const id of runs) lastSeqByRun.set(id, Number(seq));
    }
    const logs = await store.logs([...lastSeqByRun.keys()]);
    for (const [id, seq] of lastSeqByRun) {
      const log = logs.get(id) ?? [];
      // One more commit may have succeeded whose acknowledgement was not printed before the kill.
      expect(log.length - seq === 0 || log.length - seq === 1, `${log.length} events, ${seq} acknowledged`).toBe(true);
      expect(log.map((event) => event.seq)).toEqual(log.map((_, index) => index + 1));
    }
    expect(await store.runsById(children)).toHaveLength(children.length);
    await store.close();
  }

  test("a migration that was killed at one of its statements is completed by the next process", async () => {
    for (let statement = 0; ; statement += sized(23, 3)) {
      const file = newFile();
      const { signal, errors } = await run("killed", killedDuringMigration, file, `${statement}`).ended;
      expect(errors).toBe("");
      const store = await open(file);
      await store.migrate();
      expect(await store.pendingMigrations()).toEqual([]);
      expect(await store.runs({ limit: 1 })).toEqual([]);
      await store.close();
      await expectIntegrity(file);
      if (signal === null) return;
      expect(signal).toBe("SIGKILL");
    }
  });

  test("eight processes migrate and write at once: every commit succeeds and no run is claimed twice", async () => {
    const file = newFile();
    const writers = Array.from({ length: 8 }, () => run("writer", busyWriter, file));
    for (const { ended } of writers) expect(await ended).toEqual({ code: 0, signal: null, errors: "" });
    const claimed = writers.flatMap((writer) => writer.lines);
    expect(new Set(claimed).size).toBe(claimed.length);
    const store = await open(file);
    expect(await store.runs({ limit: 10_000 })).toHaveLength(8 * writerRounds * 5);
    const logs = await store.logs(claimed);
    for (const id of claimed) expect(logs.get(id)).toHaveLength(1);
    await store.close();
  }, 300_000);

  test("every commit of another process causes a hint", async () => {
    const file = newFile();
    const store = await openMigrated(file);
    let hints = 0;
    const stop = store.watch(({ kind }) => {
      if (kind === "anything") hints += 1;
    });
    const { child, lines, ended } = run("starter", starter, file);
    await waitUntil(() => lines.includes("ready"));
    for (let round = 0; round < 40; round += 1) {
      const before = hints;
      child.stdin?.write("go\n");
      await waitUntil(() => hints > before);
      await waitUntil(() => lines.length === round + 2);
      // After the checkpoint the WAL file stays, and SQLite writes it from its start again.
      if (round === 20) await checkpoint(file);
      await new Promise((tick) => setTimeout(tick, 10));
    }
    child.stdin?.end();
    await ended;
    stop();
    await store.close();
  });

  async function checkpoint(file: string): Promise<void> {
    const { Database } = await library.load();
    const database = new Database(file);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    database.close();
  }

  async function openMigrated(file: string): Promise<Store> {
    const store = await open(file);
    await store.migrate();
    return store;
  }

  test("an open and watched store does not keep its process alive", async () => {
    const { ended } = run("idle", idle, newFile());
    expect(await ended).toEqual({ code: 0, signal: null, errors: "" });
  });
});
