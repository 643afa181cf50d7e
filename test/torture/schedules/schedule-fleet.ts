/** The processes of a campaign with schedules: workers that are killed and started again. */
import { type ChildProcess, fork } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** See test/processes/programs/schedules-worker.mjs. */
export interface ScheduleWorkerOptions {
  readonly url: string;
  /** The file to which each run appends a line. */
  readonly effects: string;
  /** In milliseconds. */
  readonly lease: number;
  readonly name: string;
  /** The last instant of the schedules that the worker declares; absent: they have none. */
  readonly endAt?: number;
}

const program = fileURLToPath(new URL("../../processes/programs/schedules-worker.mjs", import.meta.url));

export class ScheduleWorker {
  readonly #options: ScheduleWorkerOptions;
  readonly #log: string;
  #child: ChildProcess | undefined;
  #isExpectedToEnd = false;
  /** How often its process has ended without being asked or killed. */
  unexpectedEnds = 0;
  exited: Promise<void> = Promise.resolve();

  /** @param folder where the output of its processes goes */
  constructor(options: ScheduleWorkerOptions, folder: string) {
    this.#options = options;
    this.#log = join(folder, `${options.name}.log`);
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  /** Resolves when the process works, or has ended. */
  start(): Promise<void> {
    const output = openSync(this.#log, "a");
    const child = fork(program, [JSON.stringify(this.#options)], {
      execArgv: [],
      stdio: ["ignore", output, output, "ipc"],
    });
    closeSync(output);
    this.#child = child;
    this.#isExpectedToEnd = false;
    this.exited = new Promise((resolve) => {
      child.once("exit", () => {
        if (!this.#isExpectedToEnd) this.unexpectedEnds += 1;
        resolve();
      });
    });
    return new Promise((resolve) => {
      child.once("message", () => resolve());
      void this.exited.then(resolve);
    });
  }

  async kill(): Promise<void> {
    this.#isExpectedToEnd = true;
    this.#child?.kill("SIGKILL");
    await this.exited;
  }

  /** An orderly stop. The process must end by itself, or this waits forever. */
  async stop(): Promise<void> {
    this.#isExpectedToEnd = true;
    if (this.#child?.connected) this.#child.send("stop");
    await this.exited;
  }
}
