/** The command line as people run it: the built program, in a folder of its own, in processes of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export const program = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
export const workflows = fileURLToPath(new URL("fixtures/workflows.ts", import.meta.url));

export interface Answer {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CallOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Another copy of the program. */
  readonly program?: string;
}

const running = new Set<CliProcess>();

/** A command that goes on until it is stopped, or that is waited for. */
export class CliProcess {
  readonly exited: Promise<Answer>;
  readonly #child: ChildProcess;
  readonly #output = { stdout: "", stderr: "" };
  readonly #listeners = new Set<() => void>();

  constructor(cwd: string, args: readonly string[], options: CallOptions = {}) {
    if (!existsSync(program))
      throw new Error("The library is not built: run `npm test`, or `npm run build` before vitest.");
    const { PAWL_URL: _, ...inherited } = process.env;
    this.#child = spawn(process.execPath, [options.program ?? program, ...args], {
      cwd,
      env: { ...inherited, TZ: "UTC", ...options.env },
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
    running.add(this);
    void this.exited.then(() => {
      running.delete(this);
      for (const look of this.#listeners) look();
    });
  }

  /** When this is in what it has printed, on either stream; an error when it ends without. */
  until(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const all = `${this.#output.stdout}${this.#output.stderr}`;
        if (all.includes(text)) resolve();
        else if (running.has(this)) return;
        else reject(new Error(`The command ended without saying "${text}":\n${all}`));
        this.#listeners.delete(look);
      };
      this.#listeners.add(look);
      look();
    });
  }

  /** Reads nothing more: what it writes from now on finds nobody. */
  stopReading(): void {
    this.#child.stdout?.destroy();
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** As Ctrl-C does. */
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
    return new CliProcess(this.path, args, options);
  }

  pawl(...args: readonly string[]): Promise<Answer> {
    return this.begin(args).exited;
  }

  pawlWith(options: CallOptions, ...args: readonly string[]): Promise<Answer> {
    return this.begin(args, options).exited;
  }

  /** What a command that must succeed prints. */
  async text(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.pawl(...args);
    if (code !== 0) throw new Error(`pawl ${args.join(" ")} ended with ${code}: ${stderr}`);
    return stdout;
  }

  async json<T = any>(...args: readonly string[]): Promise<T> {
    return JSON.parse(await this.text(...args, "--json")) as T;
  }

  /** The sentence with which a command that must fail does so. */
  async complaint(...args: readonly string[]): Promise<string> {
    const answer = await this.pawl(...args);
    return complaintIn(answer);
  }

  async remove(): Promise<void> {
    await Promise.all([...running].map((one) => one.kill()));
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Exit code 1, one line on stderr, no stack. */
export function complaintIn({ code, stderr }: Answer): string {
  const lines = stderr.trimEnd().split("\n");
  if (code !== 1 || lines.length !== 1) throw new Error(`Not one sentence and exit code 1, but ${code}: ${stderr}`);
  return lines[0] as string;
}

/** For one test; gone after it. */
export function newFolder(): Folder {
  const folder = new Folder();
  onTestFinished(() => folder.remove());
  return folder;
}
