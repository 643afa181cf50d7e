/** One database, one object store, and the processes of the service around them. */
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import { connect, type Pawl } from "pawl";
import { expect } from "vitest";
import { type Answer, Host } from "../cli/command-line.js";
import { type TestDatabase, testDatabase } from "../support/databases.js";
import { until } from "../support/waiting.js";
import {
  compiledFile,
  type Ended,
  executeIn,
  killServiceProcesses,
  ServiceProcess,
  type Source,
} from "./service-process.js";
import { WatchedStore } from "./service-store.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** The process in which the operators' commands are executed. */
let operators: Host | null = null;

export interface WorkerSettings {
  /** Files of the example, or the path of another. */
  readonly serves?: readonly (Source | `/${string}`)[];
  readonly concurrency?: number;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Started {
  readonly id: string;
  readonly workflow: string;
  readonly key: string;
}

export class World {
  readonly store: WatchedStore;
  /** The test's own client. It has no workflow code. */
  readonly pawl: Pawl;
  readonly #database: TestDatabase;
  readonly #storeUrl: string;

  private constructor(database: TestDatabase, pawl: Pawl, store: WatchedStore, storeUrl: string) {
    this.#database = database;
    this.pawl = pawl;
    this.store = store;
    this.#storeUrl = storeUrl;
  }

  static async open(): Promise<World> {
    const database = await testDatabase("postgres");
    const store = new WatchedStore();
    return new World(database, await connect(database.url, { logger: silent }), store, await store.listen(0));
  }

  async close(): Promise<void> {
    await killServiceProcesses();
    this.store.close();
    const { differences } = await this.pawl.verify();
    await this.pawl.close();
    await this.#database.drop();
    expect(differences).toEqual([]);
  }

  begin(source: Source, args: readonly string[] = [], env: WorkerSettings["env"] = {}): ServiceProcess {
    return this.#spawn(compiledFile(source), args, env);
  }

  /** A worker process that is ready. */
  async worker(name: string, settings: WorkerSettings = {}): Promise<ServiceProcess> {
    const { serves = ["workflows"], concurrency = 10, env = {} } = settings;
    const files = serves.map((one) => (one.startsWith("/") ? one : compiledFile(one as Source)));
    const options = ["--name", name, "--concurrency", String(concurrency), "--lease", "1s"];
    const worker = this.begin("worker", [...options, ...files], env);
    await worker.until(/ serves /);
    return worker;
  }

  /** Starts a run by name from this process, which has no workflow code either. */
  async start(key: string, workflow = "process_file"): Promise<string> {
    return (await this.pawl.workflow(workflow).trigger({ bucket: "docs", key })).id;
  }

  /** A process that starts runs and ends. */
  async trigger(...args: readonly string[]): Promise<Started[]> {
    const { code, stdout, stderr } = await executeIn("trigger", args, this.#environment());
    if (code !== 0) throw new Error(`The trigger failed: ${stderr}`);
    return stdout.trimEnd().split("\n").map(readStarted);
  }

  /** A process that starts one run. */
  async triggerOne(...args: readonly string[]): Promise<string> {
    const [started] = await this.trigger(...args);
    return (started as Started).id;
  }

  /** The output of a process that checks, on either stream. */
  async check(...args: readonly string[]): Promise<string> {
    // One that waits must not keep the next from starting.
    const waits = args.includes("--wait");
    const { stdout, stderr } = await (waits
      ? this.begin("check", args).ended
      : executeIn("check", args, this.#environment()));
    return (stdout + stderr).trimEnd();
  }

  /** An operator at the command line of Pawl. */
  async operator(...args: readonly string[]): Promise<Answer> {
    operators ??= new Host();
    const ended = await operators.run(tmpdir(), args, this.#environment());
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    return ended;
  }

  async web(): Promise<Web> {
    const server = this.begin("web", [], { PORT: "0" });
    return new Web(server, await server.until(/listening on (\S+)/));
  }

  /** Runs the commands that a page shows, beside the programs. Background processes that they leave are killed. */
  async script(page: URL): Promise<Ended> {
    const blocks = readFileSync(page, "utf8").matchAll(/^```sh\n(.*?)^```$/gms);
    const commands = [...blocks].map(([, block]) => block).join("");
    const env = { PAWL_URL: this.#database.url, STORE_URL: await unusedUrl() };
    const script = `set -e; cd ${JSON.stringify(dirname(compiledFile("worker")))}\n${commands}`;
    const shell = new ServiceProcess(["sh", "-c", script], { env, leadsGroup: true });
    await shell.exited;
    return shell.kill();
  }

  async untilStatus(id: string, status: string): Promise<void> {
    await until(async () => (await this.pawl.run(id).status()) === status);
  }

  #spawn(program: string, args: readonly string[], env: WorkerSettings["env"]): ServiceProcess {
    return new ServiceProcess([process.execPath, program, ...args], { env: { ...this.#environment(), ...env } });
  }

  #environment() {
    return { PAWL_URL: this.#database.url, STORE_URL: this.#storeUrl };
  }
}

/** The web service of the example, as its clients see it. */
class Web {
  readonly process: ServiceProcess;
  readonly #url: string;

  constructor(server: ServiceProcess, url: string) {
    this.process = server;
    this.#url = url;
  }

  get(path: string) {
    return this.#ask(path, {});
  }

  post(path: string, body: object) {
    return this.#ask(path, { method: "POST", body: JSON.stringify(body) });
  }

  async #ask(path: string, init: RequestInit): Promise<{ status: number; body: Record<string, any> }> {
    const answer = await fetch(`${this.#url}${path}`, init);
    return { status: answer.status, body: (await answer.json()) as Record<string, any> };
  }
}

/** The programs agree on the port beforehand, so the listening process cannot choose it. */
async function unusedUrl(): Promise<string> {
  const store = new WatchedStore();
  const url = await store.listen(0);
  store.close();
  return url;
}

function readStarted(line: string): Started {
  const [id = "", workflow = "", key = ""] = line.split(" ");
  return { id, workflow, key };
}
