/** The processes of a campaign: each has its own proxy and an output file, and is restarted when it was killed. */
import { type ChildProcess, fork } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FaultProxy } from "./fault-proxy.js";
import type { Order, ProcessOptions, Word } from "./messages.js";

export type Role = "worker" | "client";

interface Place extends Omit<ProcessOptions, "name" | "seed"> {
  /** The folder for the output of the processes. */
  readonly output: string;
}

/** A position in the fleet, which is filled by one process after the other. */
export class Member {
  readonly role: Role;
  readonly name: string;
  readonly proxy: FaultProxy | null;
  readonly #place: Place;
  readonly #seed: number;
  readonly #onWord: (word: Word) => void;
  readonly #onDeath: (text: string) => void;
  #child: ChildProcess | undefined;
  #lives = 0;
  #isExpectedToEnd = false;
  isStopped = false;
  exited: Promise<void> = Promise.resolve();

  constructor(
    role: Role,
    name: string,
    proxy: FaultProxy | null,
    place: Place,
    seed: number,
    listen: { readonly onWord: (word: Word) => void; readonly onDeath: (text: string) => void },
  ) {
    this.role = role;
    this.name = name;
    this.proxy = proxy;
    this.#place = place;
    this.#seed = seed;
    this.#onWord = listen.onWord;
    this.#onDeath = listen.onDeath;
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  /** Resolves when the process works. */
  start(): Promise<void> {
    const { output, ...place } = this.#place;
    this.#lives += 1;
    this.#isExpectedToEnd = false;
    this.isStopped = false;
    const seed = this.#seed * 1_000 + this.#lives;
    const options: ProcessOptions = { ...place, url: this.proxy?.url ?? place.url, name: this.name, seed };
    const file = openSync(join(output, `${this.name}.log`), "a");
    const program = fileURLToPath(new URL(`${this.role}.js`, import.meta.url));
    const child = fork(program, [JSON.stringify(options)], { execArgv: [], stdio: ["ignore", file, file, "ipc"] });
    closeSync(file);
    this.#child = child;
    this.exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        if (!this.#isExpectedToEnd) this.#onDeath(`${this.name} (${child.pid}) ended by itself: ${signal ?? code}.`);
        resolve();
      });
    });
    return new Promise((resolve) => {
      child.on("message", (word: Word) => {
        if (word.kind === "ready") resolve();
        this.#onWord(word);
      });
      void this.exited.then(resolve);
    });
  }

  send(order: Order): void {
    if (this.#child?.connected) this.#child.send(order, () => {});
  }

  async kill(): Promise<void> {
    this.#isExpectedToEnd = true;
    this.#child?.kill("SIGKILL");
    await this.exited;
  }

  freeze(): void {
    this.isStopped = true;
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.isStopped = false;
    this.#child?.kill("SIGCONT");
  }

  /** Asks the process to exit. False when it did not exit in time and was killed. */
  async stop(withinMs: number): Promise<boolean> {
    this.#isExpectedToEnd = true;
    this.send({ kind: "stop" });
    const timeout = new Promise<false>((resolve) => setTimeout(resolve, withinMs, false).unref());
    const hasEnded = await Promise.race([this.exited.then(() => true as const), timeout]);
    if (!hasEnded) await this.kill();
    return hasEnded;
  }
}
