// Database servers for tests, each in a temporary folder on a free port, which tests may kill and restart.
//
// Settings are the servers' defaults, including fsync: what survives a kill here survives it elsewhere. A guardian
// process (guardian.mjs) ends the server and removes its folder when this process ends, however it ends.

import { spawn } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { findOrInstall, isRoot } from "./binaries.mjs";
import { mysql } from "./engines/mysql.mjs";
import { pgbouncer } from "./engines/pgbouncer.mjs";
import { postgres } from "./engines/postgres.mjs";
import { sqld } from "./engines/sqld.mjs";
import { capture } from "./run.mjs";

/**
 * Starts a PostgreSQL server for the caller. Throws a plain sentence when that is impossible. Where the tests go
 * through PgBouncer (`npm test -- --pgbouncer`), so does its URL.
 */
export async function ownPostgres() {
  const server = await ownOrThrow(postgres);
  if (!process.env.PAWL_TEST_PGBOUNCER) return server;
  const pooler = await ownPgbouncer(server.url);
  const remove = async () => {
    await pooler.remove();
    await OwnServer.prototype.remove.call(server);
  };
  return Object.assign(server, { url: pooler.url, remove });
}

/**
 * Starts a PgBouncer for the caller in front of the server of this URL. `url` leads to the same database through it.
 * Options: `poolMode` ("transaction"), `poolSize` (10), the sessions that all its clients share for one database.
 */
export async function ownPgbouncer(target, options = {}) {
  return ownOrThrow(pgbouncer, pgbouncer.inFrontOf(target, options));
}

/** Starts a MariaDB server for the caller (MySQL where only that is installed). */
export const ownMariadb = () => ownOrThrow(mysql);

/** Starts a libSQL server for the caller; with more arguments, and the token that it requires then. */
export const ownSqld = ({ args = [], token } = {}) =>
  ownOrThrow({
    ...sqld,
    serve: (...given) => [...sqld.serve(...given), ...args],
    connect: (url) => sqld.connect(url, token),
  });

async function ownOrThrow(engine, configured = engine) {
  const { binaries, why } = await findOrInstall(engine);
  if (!binaries) throw new Error(`No ${engine.label} server can be started: ${why}.`);
  return ownServer(configured, binaries);
}

/**
 * Creates a data folder with `engine.initialise` (null: it has none), then runs `engine.serve` on it. Never as root.
 */
export async function ownServer(engine, binaries) {
  const account = await unprivileged(engine);
  const dir = mkdtempSync(join(tmpdir(), `pawl-${engine.name}-`));
  mkdirSync(join(dir, "data"), { mode: 0o700 });
  if (account) for (const path of [dir, join(dir, "data")]) chownSync(path, account.uid, account.gid);

  const server = new OwnServer(engine, binaries, { dir, account, port: await freePort() });
  try {
    const command = await engine.initialise(binaries, dir);
    if (command === null) {
      await server.start();
      return server;
    }
    const [program, ...args] = command;
    await capture(program, args, { cwd: dir, ...account });
    await server.start();
    const admin = await engine.connect(engine.url({ user: engine.adminUser, port: server.port }));
    await admin.createDatabase("pawl");
    await admin.close();
    return server;
  } catch (error) {
    await server.remove();
    throw error;
  }
}

class OwnServer {
  #engine;
  #binaries;
  #account;
  #guardian;
  #process;

  constructor(engine, binaries, { dir, account, port }) {
    this.#engine = engine;
    this.#binaries = binaries;
    this.#account = account;
    this.dir = dir;
    this.port = port;
    this.url = engine.url({ user: engine.adminUser, port, database: "pawl" });
    this.#guardian = spawnGuardian(dir, engine.crashSignal);
  }

  get pid() {
    return this.#process?.pid;
  }

  /** Starts the server (again) and returns when it answers. Does nothing while it runs. */
  async start() {
    const giveUpAt = Date.now() + 15_000;
    while (this.pid === undefined) {
      const exited = this.#spawn();
      const ready = await this.#answers(exited);
      if (ready) return;
      // After a kill -9, PostgreSQL refuses to start until the last of its orphaned processes has exited.
      if (Date.now() > giveUpAt) throw new Error(`${this.#engine.label} does not start: ${this.#logTail()}`);
      await sleep(200);
    }
  }

  /** An orderly stop. The data stays, start() continues with it. */
  stop() {
    return this.#end(this.#engine.stopSignal);
  }

  /** Kills the server as the kernel would when memory runs out: nothing is flushed, and no client is notified. */
  kill9() {
    return this.#end("SIGKILL");
  }

  /** A crash and a restart: PostgreSQL's `-m immediate`, kill -9 for MariaDB. */
  async restartImmediate() {
    await this.#end(this.#engine.crashSignal);
    await this.start();
  }

  /** Stops the server and removes its data at once, not only when this process ends. */
  async remove() {
    await this.stop();
    this.#guardian.end();
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }

  #spawn() {
    const [program, ...args] = this.#engine.serve(this.#binaries, this.dir, this.port);
    const log = openSync(join(this.dir, "log"), "a");
    // The server gets a process group of its own, because Ctrl-C must not stop it before the tests that use it.
    const child = spawn(program, args, {
      cwd: this.dir,
      detached: true,
      stdio: ["ignore", log, log],
      ...this.#account,
    });
    child.unref();
    this.#process = child;
    this.#guardian.watch(child.pid);
    const exited = new Promise((resolve) => child.once("exit", resolve).once("error", resolve));
    exited.then(() => {
      this.#process = undefined;
      this.#guardian.watch(0);
    });
    child.exited = exited;
    return exited;
  }

  /** True when the server accepts a connection, false when it has exited instead. */
  async #answers(exited) {
    let gone = false;
    exited.then(() => {
      gone = true;
    });
    const url = this.#engine.url({ user: this.#engine.adminUser, port: this.port });
    for (const giveUpAt = Date.now() + 60_000; Date.now() < giveUpAt; await sleep(50)) {
      if (gone) return false;
      const connection = await this.#engine.connect(url).catch(() => undefined);
      if (connection) {
        await connection.close();
        return true;
      }
    }
    throw new Error(`${this.#engine.label} started but does not answer on port ${this.port}: ${this.#logTail()}`);
  }

  async #end(signal) {
    const child = this.#process;
    if (!child) return;
    child.ref();
    child.kill(signal);
    const stopped = await Promise.race([child.exited.then(() => true), sleep(30_000, false, { ref: false })]);
    if (!stopped) child.kill("SIGKILL");
    await child.exited;
  }

  #logTail() {
    return readFileSync(join(this.dir, "log"), "utf8").trim().split("\n").slice(-5).join("\n");
  }
}

/** Servers refuse to run as root, or should: the account to use instead, or nothing when the user is not root. */
async function unprivileged(engine) {
  if (!isRoot || engine.accounts === undefined) return undefined;
  for (const name of engine.accounts) {
    try {
      const [uid, gid] = await Promise.all(["-u", "-g"].map((flag) => capture("id", [flag, name])));
      return { uid: Number(uid), gid: Number(gid) };
    } catch {
      // No such account; the next may exist.
    }
  }
  throw new Error(`${engine.label} must not run as root, and there is no account ${engine.accounts.join(" or ")}.`);
}

function spawnGuardian(dir, signal) {
  const script = fileURLToPath(new URL("guardian.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, dir, signal], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
  child.unref();
  child.stdin.unref();
  child.stdin.on("error", () => {});
  return { watch: (pid) => child.stdin.write(`${pid}\n`), end: () => child.stdin.end() };
}

/** A free port below the ephemeral range, so that a server that is down for a moment finds its port still free. */
async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const free = await new Promise((resolve) => {
      const probe = createServer().once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
