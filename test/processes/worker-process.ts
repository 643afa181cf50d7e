/** Worker processes that report what they log and how their commits end. */
import { type Exit, LibraryProcess } from "../support/library-process.js";

/** See programs/worker.mjs. */
export interface WorkerProcessOptions {
  readonly url: string;
  readonly listenUrl?: string;
  readonly ledger: string;
  readonly workflows?: readonly string[];
  readonly name?: string;
  readonly concurrency?: number;
  readonly lease?: number;
  /** After how many deaths of its workers a run is paused. */
  readonly maxDeliveries?: number;
  readonly poll?: number | "never";
  /** False: it does not notify other processes. */
  readonly notify?: boolean;
  /** It receives no hints, not even of events in its own process. */
  readonly deaf?: boolean;
  /** A step with `gatedStep` blocks its whole process until this file exists. */
  readonly gate?: string;
}

type Message =
  | { readonly kind: "ready"; readonly workerId: string }
  | { readonly kind: "log"; readonly level: string; readonly text: string }
  | { readonly kind: "commit"; readonly result: string; readonly epoch: number };

export class WorkerProcess extends LibraryProcess {
  /** The warnings and errors that it logged. */
  readonly complaints: string[] = [];
  /** How its commits under a fence ended. */
  readonly commits: { readonly result: string; readonly epoch: number }[] = [];
  /** The id of its worker, once it works. */
  readonly ready: Promise<string>;
  readonly #listeners = new Set<() => void>();

  constructor(options: WorkerProcessOptions) {
    super("processes/programs/worker", options);
    this.ready = this.told((message: Message) => {
      if (message.kind === "ready") return message.workerId;
      this.#note(message);
      return undefined;
    });
  }

  freeze(): void {
    this.child.kill("SIGSTOP");
  }

  thaw(): void {
    this.child.kill("SIGCONT");
  }

  /** An orderly stop. The process must end by itself, or this waits forever. */
  stop(): Promise<Exit> {
    this.child.send("stop");
    return this.exited;
  }

  /** Resolves when something that it reported, now or later, fulfils the condition. */
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
