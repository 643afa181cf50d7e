/**
 * Supervises the worker of `pawl dev`. The worker runs in a separate process, which is replaced when a file of its code
 * changes: modules cannot be unloaded, so new code needs a new process. The old process works until the new code is
 * loaded, and stays if the new code cannot be loaded.
 */
import { type ChildProcess, fork } from "node:child_process";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { AlreadyReportedError } from "../cli-error.js";
import { clearLine } from "../live-line.js";
import type { Output } from "../output.js";
import { FileWatcher } from "./file-watcher.js";
import { type SupervisorMessage, type WorkerMessage, workerEnvVariable } from "./messages.js";

const program = fileURLToPath(new URL("../main.js", import.meta.url));

export interface SuperviseOptions {
  /** The arguments of `pawl`. */
  readonly argv: readonly string[];
  /** The address that the worker prints. */
  readonly dashboardUrl: string | null;
  /** Called whenever a worker has started. */
  onReady(): void;
}

export async function superviseWorker(out: Output, options: SuperviseOptions): Promise<void> {
  const supervisor = new Supervisor(out, options);
  try {
    await supervisor.run();
  } finally {
    supervisor.close();
  }
}

class Supervisor {
  readonly #out: Output;
  readonly #options: SuperviseOptions;
  readonly #watch: FileWatcher;
  readonly #changedFiles = new Set<string>();
  #stopSignal: NodeJS.Signals | null = null;
  /** The worker that executes runs, and the one that is loading code to replace it. */
  #currentWorker: DevWorker | null = null;
  #nextWorker: DevWorker | null = null;
  #wake: () => void = () => {};

  constructor(out: Output, options: SuperviseOptions) {
    this.#out = out;
    this.#options = options;
    this.#watch = new FileWatcher((files) => {
      for (const file of files) this.#changedFiles.add(file);
      this.#wake();
    });
  }

  async run(): Promise<void> {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => this.#requestStop(signal));
    this.#currentWorker = this.#spawn();
    if (!(await this.#currentWorker.loadResult))
      throw new AlreadyReportedError((await this.#currentWorker.exited) ?? 1);
    this.#currentWorker.start(this.#options.dashboardUrl);
    for (;;) {
      await this.#waitForChange();
      if (this.#stopSignal !== null) break;
      if (this.#currentWorker?.hasExited) this.#handleWorkerExit(this.#currentWorker);
      if (this.#changedFiles.size > 0) await this.#replace();
    }
    const code = (await this.#currentWorker?.exited) ?? 0;
    if (code !== 0) throw new AlreadyReportedError(code);
  }

  close(): void {
    this.#watch.close();
    this.#currentWorker?.kill();
    this.#nextWorker?.kill();
  }

  #spawn(): DevWorker {
    const { argv, onReady } = this.#options;
    return new DevWorker(argv, { onFile: (file) => this.#watch.add(file), onReady, onExit: () => this.#wake() });
  }

  /** Waits until a file changes, the worker exits, or a stop is requested. */
  async #waitForChange(): Promise<void> {
    while (this.#stopSignal === null && this.#changedFiles.size === 0 && this.#currentWorker?.hasExited !== true)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }

  /**
   * The worker has printed why it exited. A worker that was never ready would not become ready the next time either, so
   * `pawl dev` ends with it.
   */
  #handleWorkerExit(worker: DevWorker): void {
    if (!worker.hasBeenReady) throw new AlreadyReportedError(worker.exitCode ?? 1);
    this.#currentWorker = null;
    this.#out.note("The worker has exited; it starts again when a file changes.");
  }

  async #replace(): Promise<void> {
    const files = [...this.#changedFiles].map((file) => relative(process.cwd(), file) || file);
    this.#changedFiles.clear();
    // The worker's status line ends without a line break.
    if (this.#out.isTerminal && !this.#out.json) this.#out.stdout.write(clearLine);
    this.#out.event({ event: "files.changed", files }, () => `Changed: ${files.join(", ")}`);
    const next = this.#spawn();
    this.#nextWorker = next;
    const isLoaded = await next.loadResult;
    this.#nextWorker = null;
    if (!isLoaded) {
      if (this.#currentWorker !== null && this.#stopSignal === null)
        this.#out.note("The worker keeps the code that it has until a file changes.");
      return;
    }
    const previous = this.#currentWorker;
    this.#currentWorker = next;
    previous?.stop("SIGTERM");
    await previous?.exited;
    if (this.#stopSignal === null) next.start(this.#options.dashboardUrl);
    else next.kill();
  }

  #requestStop(signal: NodeJS.Signals): void {
    this.#stopSignal = signal;
    this.#nextWorker?.kill();
    this.#currentWorker?.stop(signal);
    this.#wake();
  }
}

interface DevWorkerEvents {
  onFile(path: string): void;
  onReady(): void;
  onExit(): void;
}

class DevWorker {
  /** Resolves to false if the process exited before its code was loaded. */
  readonly loadResult: Promise<boolean>;
  readonly exited: Promise<number | null>;
  hasBeenReady = false;
  hasExited = false;
  exitCode: number | null = null;
  readonly #child: ChildProcess;
  #hasStarted = false;

  constructor(argv: readonly string[], { onFile, onReady, onExit }: DevWorkerEvents) {
    this.#child = fork(program, [...argv], {
      env: { ...process.env, [workerEnvVariable]: "1" },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    let loaded: (isLoaded: boolean) => void = () => {};
    this.loadResult = new Promise((resolve) => {
      loaded = resolve;
    });
    this.#child.on("message", (message: WorkerMessage) => {
      if (message.kind === "file") onFile(message.path);
      else if (message.kind === "loaded") loaded(true);
      else {
        this.hasBeenReady = true;
        onReady();
      }
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

  start(dashboardUrl: string | null): void {
    this.#hasStarted = true;
    this.#send({ kind: "start", dashboardUrl });
  }

  /** Asks the worker to stop; its active runs may finish. */
  stop(signal: NodeJS.Signals): void {
    if (this.#hasStarted) this.#send({ kind: "stop", signal });
    else this.kill();
  }

  kill(): void {
    if (!this.hasExited) this.#child.kill("SIGKILL");
  }

  #send(message: SupervisorMessage): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }
}
