/** Workers in processes of their own: plain Node on the built library, as a user runs it. */
import { type ChildProcess, fork } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("programs/worker.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

/** See programs/worker.mjs. */
export interface WorkerProcessOptions {
  readonly url: string;
  readonly ledger: string;
  readonly workflows?: readonly string[];
  readonly name?: string;
  readonly concurrency?: number;
  readonly lease?: number;
  readonly poll?: number | "never";
  /** False: it tells other processes nothing. */
  readonly notify?: boolean;
  /** It hears nothing, not even of what happens in its own process. */
  readonly deaf?: boolean;
  /** A step with `gatedStep` stands still, with its whole process, until this file exists. */
  readonly gate?: string;
}

type Message =
  | { readonly kind: "ready"; readonly workerId: string }
  | { readonly kind: "log"; readonly level: string; readonly text: string }
  | { readonly kind: "commit"; readonly result: string; readonly epoch: number };

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const running = new Set<WorkerProcess>();

export class WorkerProcess {
  readonly pid: number;
  /** What it logged, warnings and errors only. */
  readonly complaints: string[] = [];
  /** How its commits under a fence ended. */
  readonly commits: { readonly result: string; readonly epoch: number }[] = [];
  /** Its worker's id, once it works. */
  readonly ready: Promise<string>;
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #listeners = new Set<() => void>();
  #output = "";

  constructor(options: WorkerProcessOptions) {
    if (!existsSync(built))
      throw new Error("The library is not built: run `npm test`, or `npm run build` before vitest.");
    // Not the flags of the test runner.
    this.#child = fork(program, [JSON.stringify(options)], { execArgv: [], stdio: ["ignore", "pipe", "pipe", "ipc"] });
    this.pid = this.#child.pid as number;
    this.#child.stdout?.on("data", (text) => {
      this.#output += text;
    });
    this.#child.stderr?.on("data", (text) => {
      this.#output += text;
    });
    this.exited = new Promise((resolve) => this.#child.once("exit", (code, signal) => resolve({ code, signal })));
    this.ready = new Promise((resolve, reject) => {
      this.#child.on("message", (message: Message) => {
        if (message.kind === "ready") resolve(message.workerId);
        else this.#note(message);
      });
      void this.exited.then(() => reject(new Error(`A worker process ended before it was ready: ${this.#output}`)));
    });
    this.ready.catch(() => {});
    running.add(this);
    void this.exited.then(() => running.delete(this));
  }

  /** What it printed: nothing, if all is well. */
  get output(): string {
    return this.#output;
  }

  kill(): Promise<Exit> {
    this.#child.kill("SIGKILL");
    return this.exited;
  }

  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  /** An orderly end. The process must end by itself, or this waits forever. */
  stop(): Promise<Exit> {
    this.#child.send("stop");
    return this.exited;
  }

  /** When what it has told so far, or will tell, fulfils the condition. */
  until(condition: (worker: WorkerProcess) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!condition(this)) return;
        this.#listeners.delete(look);
        resolve();
      };
      this.#listeners.add(look);
      look();
    });
  }

  #note(message: Exclude<Message, { kind: "ready" }>): void {
    if (message.kind === "commit") this.commits.push(message);
    else if (message.level === "warn" || message.level === "error") this.complaints.push(message.text);
    for (const look of this.#listeners) look();
  }
}

/** For `afterEach`: nothing of a failed test goes on. */
export async function killAllWorkers(): Promise<void> {
  await Promise.all([...running].map((worker) => worker.kill()));
}
