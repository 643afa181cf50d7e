/** A program in a process of its own: plain Node on the built library, as a user runs it. */
import { type ChildProcess, fork } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { programFile } from "./program-file.js";

const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const running = new Set<LibraryProcess>();

export class LibraryProcess {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  protected readonly child: ChildProcess;
  #output = "";

  /** @param program its path below `test`, such as "processes/programs/worker"; its one argument tells it everything */
  constructor(program: string, options: object) {
    if (!existsSync(built))
      throw new Error("The library is not built: run `npm test`, or `npm run build` before vitest.");
    // Not the flags of the test runner.
    this.child = fork(programFile(program), [JSON.stringify(options)], {
      execArgv: [],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    this.pid = this.child.pid as number;
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (text) => {
        this.#output += text;
      });
    }
    this.exited = new Promise((resolve) => this.child.once("exit", (code, signal) => resolve({ code, signal })));
    running.add(this);
    void this.exited.then(() => running.delete(this));
  }

  /** What it printed: nothing, if all is well. */
  get output(): string {
    return this.#output;
  }

  kill(): Promise<Exit> {
    this.child.kill("SIGKILL");
    return this.exited;
  }

  /** As a deployment ends a process. It must end by itself, or this waits forever. */
  terminate(): Promise<Exit> {
    this.child.kill("SIGTERM");
    return this.exited;
  }

  /** The first of its messages in which this finds something; an error when it ends before. */
  protected told<Message, Found>(find: (message: Message) => Found | undefined): Promise<Found> {
    const found = new Promise<Found>((resolve, reject) => {
      this.child.on("message", (message) => {
        const what = find(message as Message);
        if (what !== undefined) resolve(what);
      });
      void this.exited.then(() => reject(new Error(`A worker process ended before it was ready: ${this.#output}`)));
    });
    found.catch(() => {});
    return found;
  }
}

/** For `afterEach`: nothing of a failed test goes on. */
export async function killAllProcesses(): Promise<void> {
  await Promise.all([...running].map((one) => one.kill()));
}
