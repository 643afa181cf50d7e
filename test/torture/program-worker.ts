/** A worker of a campaign that is a program of its own: killed, stopped and started again. */
import { type ChildProcess, fork } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { programFile } from "../support/program-file.js";

export class ProgramWorker<Options extends { readonly name: string }> {
  readonly #program: string;
  readonly #log: string;
  options: Options;
  #child: ChildProcess | undefined;
  #isExpectedToEnd = false;
  /** Whether its process is stopped by a signal, and goes on later. */
  isFrozen = false;
  /** How often its process has ended without being asked or killed. */
  unexpectedEnds = 0;
  exited: Promise<void> = Promise.resolve();

  /**
   * @param program the name of a file in test/processes/programs; its one argument are the options
   * @param folder where the output of its processes goes
   */
  constructor(program: string, options: Options, folder: string) {
    this.#program = programFile(`processes/programs/${program}`);
    this.options = options;
    this.#log = join(folder, `${options.name}.log`);
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  /** Resolves when the process works, or has ended. */
  start(): Promise<void> {
    const output = openSync(this.#log, "a");
    const child = fork(this.#program, [JSON.stringify(this.options)], {
      execArgv: [],
      stdio: ["ignore", output, output, "ipc"],
    });
    closeSync(output);
    this.#child = child;
    this.#isExpectedToEnd = false;
    this.isFrozen = false;
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

  freeze(): void {
    this.isFrozen = true;
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.isFrozen = false;
    this.#child?.kill("SIGCONT");
  }

  /** An orderly stop. The process must end by itself, or this waits forever. */
  async stop(): Promise<void> {
    this.#isExpectedToEnd = true;
    if (this.#child?.connected) this.#child.send("stop");
    await this.exited;
  }
}
