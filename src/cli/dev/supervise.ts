/**
 * `pawl dev`: the worker runs in a process of its own, which is replaced when a file of its code changes. Modules cannot be
 * unloaded, so that new code needs a new process. The old one goes on until the new code is loaded; code that cannot be
 * loaded replaces nothing.
 */
import { type ChildProcess, fork } from "node:child_process";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { AlreadyTold } from "../cli-error.js";
import type { Output } from "../output.js";
import { FileWatch } from "./file-watch.js";
import { type FromWorker, type ToWorker, workerMark } from "./messages.js";

const program = fileURLToPath(new URL("../main.js", import.meta.url));

/** @param typed what was typed behind `pawl` */
export async function superviseWorker(out: Output, typed: readonly string[]): Promise<void> {
  const supervisor = new Supervisor(out, typed);
  try {
    await supervisor.run();
  } finally {
    supervisor.close();
  }
}

class Supervisor {
  readonly #out: Output;
  readonly #typed: readonly string[];
  readonly #watch: FileWatch;
  readonly #changed = new Set<string>();
  #stop: NodeJS.Signals | null = null;
  /** The worker that serves, and one that takes its place. */
  #current: DevWorker | null = null;
  #next: DevWorker | null = null;
  #wake: () => void = () => {};

  constructor(out: Output, typed: readonly string[]) {
    this.#out = out;
    this.#typed = typed;
    this.#watch = new FileWatch((files) => {
      for (const file of files) this.#changed.add(file);
      this.#wake();
    });
  }

  async run(): Promise<void> {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => this.#askToStop(signal));
    this.#current = this.#spawn();
    if (!(await this.#current.isLoaded)) throw new AlreadyTold((await this.#current.exited) ?? 1);
    this.#current.begin();
    for (;;) {
      await this.#somethingHappens();
      if (this.#stop !== null) break;
      if (this.#current?.hasExited) this.#lost(this.#current);
      if (this.#changed.size > 0) await this.#replace();
    }
    const code = (await this.#current?.exited) ?? 0;
    if (code !== 0) throw new AlreadyTold(code);
  }

  close(): void {
    this.#watch.close();
    this.#current?.kill();
    this.#next?.kill();
  }

  #spawn(): DevWorker {
    return new DevWorker(this.#typed, {
      onFile: (file) => this.#watch.add(file),
      onExit: () => this.#wake(),
    });
  }

  /** A file has changed, a worker has ended, or all of it is to end. */
  async #somethingHappens(): Promise<void> {
    while (this.#stop === null && this.#changed.size === 0 && this.#current?.hasExited !== true)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }

  /** It has told why. One that never served would not serve the next time either. */
  #lost(worker: DevWorker): void {
    if (!worker.hasServed) throw new AlreadyTold(worker.exitCode ?? 1);
    this.#current = null;
    this.#out.note("The worker has ended; it begins again when a file changes.");
  }

  async #replace(): Promise<void> {
    const files = [...this.#changed].map((file) => relative(process.cwd(), file) || file);
    this.#changed.clear();
    this.#out.event({ event: "files.changed", files }, () => `Changed: ${files.join(", ")}`);
    const next = this.#spawn();
    this.#next = next;
    const isLoaded = await next.isLoaded;
    this.#next = null;
    if (!isLoaded) {
      if (this.#current !== null && this.#stop === null)
        this.#out.note("The worker goes on with the code that it has, until a file changes.");
      return;
    }
    const before = this.#current;
    this.#current = next;
    before?.stop("SIGTERM");
    await before?.exited;
    if (this.#stop === null) next.begin();
    else next.kill();
  }

  #askToStop(signal: NodeJS.Signals): void {
    this.#stop = signal;
    this.#next?.kill();
    this.#current?.stop(signal);
    this.#wake();
  }
}

interface DevWorkerEvents {
  onFile(path: string): void;
  onExit(): void;
}

class DevWorker {
  /** False: it ended before its code was loaded. */
  readonly isLoaded: Promise<boolean>;
  readonly exited: Promise<number | null>;
  hasServed = false;
  hasExited = false;
  exitCode: number | null = null;
  readonly #child: ChildProcess;
  #hasBegun = false;

  constructor(typed: readonly string[], { onFile, onExit }: DevWorkerEvents) {
    this.#child = fork(program, [...typed], {
      env: { ...process.env, [workerMark]: "1" },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    let loaded: (isLoaded: boolean) => void = () => {};
    this.isLoaded = new Promise((resolve) => {
      loaded = resolve;
    });
    this.#child.on("message", (message: FromWorker) => {
      if (message.kind === "file") onFile(message.path);
      else if (message.kind === "loaded") loaded(true);
      else this.hasServed = true;
    });
    this.exited = new Promise((resolve) => {
      this.#child.once("exit", (code) => {
        this.hasExited = true;
        this.exitCode = code;
        loaded(false);
        resolve(code);
        onExit();
      });
    });
  }

  begin(): void {
    this.#hasBegun = true;
    this.#send({ kind: "begin" });
  }

  /** What it has in hand may finish. */
  stop(signal: NodeJS.Signals): void {
    if (this.#hasBegun) this.#send({ kind: "stop", signal });
    else this.kill();
  }

  kill(): void {
    if (!this.hasExited) this.#child.kill("SIGKILL");
  }

  #send(message: ToWorker): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }
}
