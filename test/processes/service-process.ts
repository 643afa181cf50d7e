/**
 * The programs of examples/files, each in a process of its own: compiled, with the built library, as users run them.
 */
import { type ChildProcess, execFile, fork, spawn } from "node:child_process";
import { existsSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../..", import.meta.url));
/**
 * The folder is in the repository, so that `from "pawl"` resolves through the exports map of its package.json to dist, unless
 * `npm test` has bundled the library.
 */
const compiled = join(root, ".demo", `service-${process.pid}`);

const sources = {
  worker: new URL("../../examples/files/worker.ts", import.meta.url),
  trigger: new URL("../../examples/files/trigger.ts", import.meta.url),
  check: new URL("../../examples/files/check.ts", import.meta.url),
  setup: new URL("../../examples/files/setup.ts", import.meta.url),
  web: new URL("../../examples/files/web.ts", import.meta.url),
  storage: new URL("../../examples/files/storage.ts", import.meta.url),
  workflows: new URL("../../examples/files/workflows.ts", import.meta.url),
  workflowsV2: new URL("../../examples/files/workflows.v2.ts", import.meta.url),
  pinned: new URL("../../examples/files/workflows.pinned.ts", import.meta.url),
  emails: new URL("../../examples/files/emails.ts", import.meta.url),
};

export type Source = keyof typeof sources;

/** The path of the compiled form of one of the files. */
export const compiledFile = (source: Source): string =>
  join(compiled, relative(root, fileURLToPath(sources[source])).replace(/\.ts$/, ".js"));

/** The command line of Pawl. */
const pawlProgram = join(root, "dist/cli/main.js");

export async function compileExamples(): Promise<void> {
  if (!existsSync(pawlProgram))
    throw new Error("The library is not built: run `npm test`, or `npm run build` before vitest.");
  const options = ["--noCheck", "--sourceMap", "false", "--outDir", compiled];
  await promisify(execFile)(join(root, "node_modules/.bin/tsc"), ["-p", "tsconfig.examples.json", ...options], {
    cwd: root,
  });
  const bundled = process.env.PAWL_TEST_PROGRAMS;
  if (bundled) useLibrary(bundled);
}

/** Within the folder, `from "pawl"` then resolves to the bundled library: see `programFile`. */
function useLibrary(bundled: string): void {
  symlinkSync(bundled, join(compiled, "pawl"));
  const description = { name: "pawl", type: "module", exports: "./pawl/index.js" };
  writeFileSync(join(compiled, "package.json"), JSON.stringify(description));
}

export function removeCompiled(): void {
  rmSync(compiled, { recursive: true, force: true });
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Settings {
  readonly env: Readonly<Record<string, string>>;
  readonly leadsGroup?: boolean;
}

const running = new Set<ServiceProcess>();
process.once("exit", () => {
  for (const one of running) one.signal("SIGKILL");
});

export class ServiceProcess {
  readonly pid: number;
  /**
   * Resolves when the process has ended and all its output has been read. The process must end by itself, or be ended.
   */
  readonly ended: Promise<Ended>;
  readonly exited: Promise<void>;
  readonly #child: ChildProcess;
  readonly #said = { stdout: "", stderr: "" };
  readonly #listeners = new Set<() => void>();

  readonly #leadsGroup: boolean;

  /** @param leadsGroup signals are also sent to its children */
  constructor(command: readonly [string, ...string[]], { env, leadsGroup = false }: Settings) {
    const { PAWL_URL: _, DATABASE_URL: __, ...inherited } = process.env;
    const [program, ...args] = command;
    this.#leadsGroup = leadsGroup;
    this.#child = spawn(program, args, {
      env: { ...inherited, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: leadsGroup,
    });
    this.pid = this.#child.pid as number;
    for (const stream of ["stdout", "stderr"] as const)
      this.#child[stream]?.on("data", (text) => {
        this.#said[stream] += text;
        for (const look of this.#listeners) look();
      });
    running.add(this);
    this.exited = new Promise((resolve) => this.#child.once("exit", () => resolve()));
    this.ended = new Promise((resolve) => {
      this.#child.once("close", (code, signal) => {
        running.delete(this);
        resolve({ code, signal, ...this.#said });
      });
    });
  }

  get stdout(): string {
    return this.#said.stdout;
  }

  get stderr(): string {
    return this.#said.stderr;
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.#leadsGroup) this.#child.kill(signal);
    else process.kill(-this.pid, signal);
  }

  kill(): Promise<Ended> {
    this.signal("SIGKILL");
    return this.ended;
  }

  terminate(): Promise<Ended> {
    this.signal("SIGTERM");
    return this.ended;
  }

  /** Returns the output that matches, now or later; rejects when the process ends without it. */
  until(pattern: RegExp): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(this.#said.stdout);
        if (found === null) return;
        this.#listeners.delete(look);
        resolve(found[1] ?? found[0]);
      };
      this.#listeners.add(look);
      look();
      void this.ended.then(({ code, stdout, stderr }) =>
        reject(new Error(`It ended with ${code} before it said ${pattern}:\n${stdout}${stderr}`)),
      );
    });
  }
}

/**
 * A process that executes one program again and again, for programs that end by themselves: most of what each takes is to load the
 * library. It ends with the process that started it.
 */
class ProgramHost {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (ended: Ended) => void>();
  #calls = 0;

  constructor() {
    const host = fileURLToPath(new URL("programs/program-host.mjs", import.meta.url));
    this.#child = fork(host, { execArgv: [] });
    this.#child.unref();
    this.#child.channel?.unref();
    this.#child.on("message", ({ id, ended }: { id: number; ended: Ended }) => {
      this.#waiting.get(id)?.(ended);
      this.#waiting.delete(id);
    });
  }

  execute(program: string, args: readonly string[], env: Settings["env"]): Promise<Ended> {
    this.#calls += 1;
    const id = this.#calls;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#child.send({ id, program, args, env });
    });
  }
}

const hosts = new Map<Source, ProgramHost>();

/** Each program has a process of its own, apart from that of the test and those of the workers. */
export function executeIn(source: Source, args: readonly string[], env: Settings["env"]): Promise<Ended> {
  const host = hosts.get(source) ?? new ProgramHost();
  hosts.set(source, host);
  return host.execute(compiledFile(source), args, env);
}

/** For `afterEach`: no process of a failed test survives. */
export async function killServiceProcesses(): Promise<void> {
  await Promise.all([...running].map((one) => one.kill()));
}
