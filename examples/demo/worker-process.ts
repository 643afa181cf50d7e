/** A worker in a process of its own, which can be killed. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export class WorkerProcess {
  readonly name: string;
  /** Its messages, newest last. */
  readonly said: string[] = [];
  readonly #child: ChildProcess;
  readonly #gone: Promise<unknown[]>;

  constructor(name: string, { database, ledger }: { readonly database: string; readonly ledger: string }) {
    this.name = name;
    this.#child = fork(fileURLToPath(new URL("./worker.js", import.meta.url)), [database, ledger, name]);
    this.#gone = once(this.#child, "exit");
    this.#child.on("message", (text) => this.said.push(String(text)));
    process.once("exit", () => this.#child.kill("SIGKILL"));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Leaves no chance to clean up or to finish a step. Returns the signal that ended the process. */
  async kill(): Promise<string | null> {
    this.#child.kill("SIGKILL");
    await this.#gone;
    return this.#child.signalCode;
  }

  /** Lets the process finish its current steps and exit. Returns its exit code. */
  async stop(): Promise<number | null> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#gone;
    return this.#child.exitCode;
  }
}
