/**
 * The watchdog: a thread that notices when the event loop of this process is blocked. All workers of this process that use
 * the same database share one watchdog.
 */

import { Worker as Thread } from "node:worker_threads";
import type { Logger } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { StoreOptions } from "../../store/contract/store.js";
import { Frames } from "./frames.js";
import type { WatchedWorker } from "./loop-watch.js";

/** The module of the thread, and the settings with which the thread opens its own connection to the store. */
export interface StoreAddress {
  /** The module that the thread executes. */
  readonly program: URL;
  readonly url: string;
  readonly options: Pick<StoreOptions, "authToken" | "schema" | "pooled" | "listenUrl">;
}

/** A message to the thread. */
export type WatchdogMessage =
  | { readonly kind: "watch"; readonly worker: WatchedWorker }
  | { readonly kind: "renewed"; readonly index: number; readonly at: number }
  | { readonly kind: "unwatch"; readonly index: number };

/** The data that the thread is started with. */
export interface WatchdogData extends Omit<StoreAddress, "program"> {
  readonly memory: SharedArrayBuffer;
}

/** The part of the watchdog that one worker uses. */
export interface WorkerWatchdog {
  /** Called before user code of this run is called. `key` is the key of the step, or "" for the workflow's handler. */
  enter(runId: string, key: string): void;
  leave(): void;
  /** Until `clearSuspect` is called, this run is reported if the event loop blocks outside of any frame. */
  markSuspect(runId: string): void;
  clearSuspect(): void;
  /** Called when the worker's lease was renewed; `at` is the time of the renewal by `Runtime.processMonotonic`. */
  noteLeaseRenewed(at: number): void;
  stop(): void;
}

/** One watchdog for each database that workers of this process use. */
const watchdogs = new Map<string, Watchdog>();

export function watchdogFor(address: StoreAddress, log: Logger, runtime: Runtime): Watchdog {
  const key = JSON.stringify([address.program.href, address.url, address.options]);
  let watchdog = watchdogs.get(key);
  if (watchdog === undefined) watchdogs.set(key, (watchdog = new Watchdog(address, log, runtime)));
  return watchdog;
}

/** All workers share one stack of frames, because the process has one event loop. */
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
        this.#send({ kind: "unwatch", index });
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
    // The thread gets none of this process's Node flags, because their module loaders are meant for the user's sources
    // only.
    const thread = new Thread(program, { workerData, execArgv: [], name: "pawl-watchdog" });
    thread.on("error", (error) => {
      this.#log.warn("The watchdog of this process failed; from now on a blocked event loop counts as a crash.", error);
    });
    thread.unref();
    return thread;
  }
}
