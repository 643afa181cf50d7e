/** Workers that go through items, in processes of their own: plain Node on the built library, as a user runs it. */
import { type ChildProcess, fork } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Exit } from "./worker-process.js";

/** Those in `programs` that write what they do into a file. */
type Program = "resumable-worker" | "saga-worker";
const pathOf = (program: Program) => fileURLToPath(new URL(`programs/${program}.mjs`, import.meta.url));
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

/** See the programs. */
export interface ResumableProcessOptions {
  readonly url: string;
  readonly ledger: string;
  readonly lease: number;
  readonly checkpoint?: "awaited" | "relaxed";
}

const running = new Set<ResumableProcess>();

export class ResumableProcess {
  readonly ready: Promise<void>;
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;
  #output = "";

  constructor(options: ResumableProcessOptions, program: Program = "resumable-worker") {
    if (!existsSync(built))
      throw new Error("The library is not built: run `npm test`, or `npm run build` before vitest.");
    // Not the flags of the test runner.
    this.#child = fork(pathOf(program), [JSON.stringify(options)], {
      execArgv: [],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (text) => {
        this.#output += text;
      });
    }
    this.exited = new Promise((resolve) => this.#child.once("exit", (code, signal) => resolve({ code, signal })));
    this.ready = new Promise((resolve, reject) => {
      this.#child.once("message", () => resolve());
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

  /** As a deployment ends a process. It must end by itself, or this waits forever. */
  terminate(): Promise<Exit> {
    this.#child.kill("SIGTERM");
    return this.exited;
  }
}

/** For `afterEach`: nothing of a failed test goes on. */
export async function killAllResumables(): Promise<void> {
  await Promise.all([...running].map((one) => one.kill()));
}
