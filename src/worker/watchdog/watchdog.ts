/** The watchdog of this process: a thread that notices when the event loop stands still, one for all workers. */

import { Worker as Thread } from "node:worker_threads";
import type { Logger } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { StoreOptions } from "../../store/contract/store.js";
import { Frames } from "./frames.js";
import type { WatchedWorker } from "./loop-watch.js";

/** Where a thread finds the database by itself. */
export interface StoreAddress {
  /** The program of the thread. */
  readonly program: URL;
  readonly url: string;
  readonly options: Pick<StoreOptions, "authToken" | "schema" | "pooled" | "listenUrl">;
}

/** What the thread is told. */
export type WatchdogMessage =
  | { readonly kind: "watch"; readonly worker: WatchedWorker }
  | { readonly kind: "renewed"; readonly index: number; readonly at: number }
  | { readonly kind: "leave"; readonly index: number };

/** How the thread is begun. */
export interface WatchdogData extends Omit<StoreAddress, "program"> {
  readonly memory: SharedArrayBuffer;
}

/** One worker's part of it. */
export interface WorkerWatchdog {
  /** Code of this run is called; "" is its handler. */
  enter(runId: string, key: string): void;
  leave(): void;
  /** This run may be one that blocks: until `clear`, it is the one if nothing else is known. */
  markSuspect(runId: string): void;
  clearSuspect(): void;
  /** Its lease was renewed at this time, by `threadClock`. */
  noteLeaseRenewed(at: number): void;
  stop(): void;
}

/** One for each database that workers of this process have. */
const watchdogs = new Map<string, Watchdog>();

export function watchdogFor(address: StoreAddress, log: Logger, runtime: Runtime): Watchdog {
  const key = JSON.stringify([address.program.href, address.url, address.options]);
  let watchdog = watchdogs.get(key);
  if (watchdog === undefined) watchdogs.set(key, (watchdog = new Watchdog(address, log, runtime)));
  return watchdog;
}

/** One stack for all of them: there is one event loop. */
const frames = new Frames();
let nextIndex = 0;

class Watchdog {
  readonly #address: StoreAddress;
  readonly #log: Logger;
  readonly #leaseMsByIndex = new Map<number, number>();
  #thread: Thread | null = null;
  readonly #runtime: Runtime;
  #heartbeatTimer: Timer | null = null;

  constructor(address: StoreAddress, log: Logger, runtime: Runtime) {
    this.#runtime = runtime;
    this.#address = address;
    this.#log = log;
  }

  watch(worker: Omit<WatchedWorker, "index">): WorkerWatchdog {
    const index = nextIndex++;
    this.#leaseMsByIndex.set(index, worker.leaseMs);
    this.#restartHeartbeat();
    this.#send({ kind: "watch", worker: { ...worker, index } });
    return {
      enter: (runId, key) => frames.enter(index, runId, key),
      leave: () => frames.leave(),
      markSuspect: (runId) => frames.markSuspect(index, runId),
      clearSuspect: () => frames.clearSuspect(),
      noteLeaseRenewed: (at) => this.#send({ kind: "renewed", index, at }),
      stop: () => {
        if (!this.#leaseMsByIndex.delete(index)) return;
        this.#send({ kind: "leave", index });
        this.#restartHeartbeat();
      },
    };
  }

  #restartHeartbeat(): void {
    this.#runtime.clearInterval(this.#heartbeatTimer);
    this.#heartbeatTimer = null;
    if (this.#leaseMsByIndex.size === 0) return;
    const everyMs = Math.max(10, Math.min(...this.#leaseMsByIndex.values()) / 30);
    this.#heartbeatTimer = this.#runtime.setInterval(() => frames.heartbeat(), everyMs).unref();
  }

  #send(message: WatchdogMessage): void {
    this.#thread ??= this.#startThread();
    this.#thread.postMessage(message);
  }

  #startThread(): Thread {
    const { program, ...address } = this.#address;
    const workerData: WatchdogData = { ...address, memory: frames.memory };
    // Without the flags of this process: a loader of its sources has no business there.
    const thread = new Thread(program, { workerData, execArgv: [], name: "pawl-watchdog" });
    thread.on("error", (error) => {
      this.#log.warn("The watchdog of this process failed: a blocked event loop counts as a crash from now on.", error);
    });
    thread.unref();
    return thread;
  }
}
