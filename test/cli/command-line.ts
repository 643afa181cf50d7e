/**
 * The command line as users run it: the built program, in a folder of its own. `pawl` runs commands in one long-lived
 * process (host.mjs says why), `begin` runs each command in a process of its own.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export const program = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
export const workflows = fileURLToPath(new URL("fixtures/workflows.ts", import.meta.url));
export const jobsFile = fileURLToPath(new URL("fixtures/jobs.ts", import.meta.url));

export interface Answer {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CallOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Path of another copy of the program. */
  readonly program?: string;
}

/** Environment variables of the machine that would select a database. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const { PAWL_URL: _, DATABASE_URL: __, ...inherited } = process.env;
  return { ...inherited, TZ: "UTC" };
}

function checkBuilt(): void {
  if (!existsSync(program))
    throw new Error("The library is not built: run `npm test`, or `npm run build` before vitest.");
}

/** The process that executes one command after the other; it ends with the process that started it, or with `end`. */
export class Host {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve(answer: Answer): void; reject(error: Error): void }>();
  #calls = 0;

  /** @param installed path of the program in an installed package, instead of that of this repository */
  constructor(...installed: readonly string[]) {
    checkBuilt();
    this.#child = fork(fileURLToPath(new URL("host.mjs", import.meta.url)), installed, { env: cleanEnvironment() });
    this.#child.unref();
    this.#child.channel?.unref();
    this.#child.on("message", ({ id, answer }: { id: number; answer: Answer }) => {
      this.#waiting.get(id)?.resolve(answer);
      this.#waiting.delete(id);
    });
    this.#child.once("exit", (code) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`The host of commands ended with ${code}.`));
    });
  }

  end(): void {
    this.#child.kill();
  }

  run(cwd: string, args: readonly string[], env: CallOptions["env"] = {}): Promise<Answer> {
    this.#calls += 1;
    const id = this.#calls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, cwd, args, env });
    });
  }
}

let host: Host | null = null;

/** A command in a process of its own, which runs until it ends or is stopped. */
export class CliProcess {
  readonly exited: Promise<Answer>;
  readonly #child: ChildProcess;
  readonly #output = { stdout: "", stderr: "" };
  readonly #listeners = new Set<() => void>();
  #hasExited = false;

  constructor(cwd: string, args: readonly string[], options: CallOptions = {}) {
    checkBuilt();
    this.#child = spawn(process.execPath, [options.program ?? program, ...args], {
      cwd,
      env: { ...cleanEnvironment(), ...options.env },
      stdio: "pipe",
    });
    this.#child.stdin?.end(options.input ?? "");
    for (const name of ["stdout", "stderr"] as const) {
      this.#child[name]?.on("data", (text) => {
        this.#output[name] += text;
        for (const look of this.#listeners) look();
      });
    }
    this.exited = new Promise((resolve) => this.#child.once("close", (code) => resolve({ code, ...this.#output })));
    void this.exited.then(() => {
      this.#hasExited = true;
      for (const look of this.#listeners) look();
    });
  }

  /** Resolves when the text appears on either stream; rejects when the command ends without printing it. */
  until(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const all = `${this.#output.stdout}${this.#output.stderr}`;
        if (all.includes(text)) resolve();
        else if (!this.#hasExited) return;
        else reject(new Error(`The command ended without saying "${text}":\n${all}`));
        this.#listeners.delete(look);
      };
      this.#listeners.add(look);
      look();
    });
  }

  /** What the command has printed so far. */
  get stdout(): string {
    return this.#output.stdout;
  }

  /** Closes the reading end, so that everything the command writes from now on is lost. */
  stopReading(): void {
    this.#child.stdout?.destroy();
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Stops the command as Ctrl-C does. */
  stop(): Promise<Answer> {
    this.signal("SIGINT");
    return this.exited;
  }

  kill(): Promise<Answer> {
    this.signal("SIGKILL");
    return this.exited;
  }
}

/** A folder in which commands are run. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), "pawl-cli-"));
  readonly url = `sqlite:${join(this.path, "pawl.db")}`;
  readonly #begun: CliProcess[] = [];

  write(name: string, text: string): string {
    const file = join(this.path, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  }

  has(name: string): boolean {
    return existsSync(join(this.path, name));
  }

  begin(args: readonly string[], options?: CallOptions): CliProcess {
    const process = new CliProcess(this.path, args, options);
    this.#begun.push(process);
    return process;
  }

  pawl(...args: readonly string[]): Promise<Answer> {
    return this.pawlWith({}, ...args);
  }

  /** Standard input and another program need a process of their own. */
  pawlWith(options: CallOptions, ...args: readonly string[]): Promise<Answer> {
    if (options.input !== undefined || options.program !== undefined) return this.begin(args, options).exited;
    host ??= new Host();
    return host.run(this.path, args, options.env);
  }

  /** Returns what a command that must succeed prints. */
  async text(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.pawl(...args);
    if (code !== 0) throw new Error(`pawl ${args.join(" ")} ended with ${code}: ${stderr}`);
    return stdout;
  }

  async json<T = any>(...args: readonly string[]): Promise<T> {
    return JSON.parse(await this.text(...args, "--json")) as T;
  }

  /** Returns the sentence with which a command that must fail does so. */
  async error(...args: readonly string[]): Promise<string> {
    const answer = await this.pawl(...args);
    return errorIn(answer);
  }

  async remove(): Promise<void> {
    await Promise.all(this.#begun.map((one) => one.kill()));
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Expects exit code 1 and one line on stderr without a stack. */
export function errorIn({ code, stderr }: Answer): string {
  const lines = stderr.trimEnd().split("\n");
  if (code !== 1 || lines.length !== 1) throw new Error(`Not one sentence and exit code 1, but ${code}: ${stderr}`);
  return lines[0] as string;
}

/** A folder for one test, removed after it. A concurrent test must pass its own `onTestFinished`. */
export function newFolder(onFinished: (work: () => Promise<void>) => void = onTestFinished): Folder {
  const folder = new Folder();
  onFinished(() => folder.remove());
  return folder;
}
