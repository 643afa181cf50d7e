/**
 * Watches the event loop of a process from another thread. A loop that stands still until the leases of its workers are
 * about to run out is reported: each run that those workers have is told whose code blocked it, and the workers are marked
 * dead, so that their runs go on elsewhere at once and no death is counted against them.
 *
 * It reports before the leases end: other workers that reaped this one first would count a crash for every run it has.
 */
import { encodeMessage } from "../../core/run/message.js";
import type { Fence, Store } from "../../store/contract/store.js";
import type { Frame, Frames } from "./frames.js";

export interface WatchedWorker {
  readonly index: number;
  readonly name: string;
  readonly fence: Fence;
  readonly leaseMs: number;
  /** When its lease was last renewed, by `threadClock`. */
  readonly renewedAt: number;
}

export interface LoopWatchOptions {
  readonly frames: Frames;
  /** A connection of its own: the one of the blocked thread cannot be used. */
  openStore(): Promise<Pick<Store, "ownedTasks" | "send" | "deregisterWorker" | "close">>;
  /** Tells people: the logger belongs to the thread that is blocked. */
  print(text: string): void;
}

type WatchdogStore = Awaited<ReturnType<LoopWatchOptions["openStore"]>>;

/** Both are parts of a lease. The loop may be late without harm until then, and that much is left to write it down. */
const connectAtLeaseFraction = 1 / 3;
const reportAtLeaseFraction = 0.9;

export class LoopWatch {
  readonly #options: LoopWatchOptions;
  readonly #workers = new Map<number, WatchedWorker>();
  #lastHeartbeats = -1;
  /** How often in a row a look found the loop where it was. After a pause of the whole process the first look proves nothing. */
  #checksWithoutHeartbeat = 0;
  #store: Promise<WatchdogStore> | null = null;
  /** The runs of each worker, read while they are certainly its own: others may reap it before it can be reported. */
  readonly #ownedRunIds = new Map<number, readonly string[]>();
  #isReporting = false;
  #hasWarned = false;

  constructor(options: LoopWatchOptions) {
    this.#options = options;
  }

  watch(worker: WatchedWorker): void {
    this.#workers.set(worker.index, worker);
  }

  noteLeaseRenewed(index: number, renewedAt: number): void {
    const worker = this.#workers.get(index);
    if (worker !== undefined) this.#workers.set(index, { ...worker, renewedAt });
  }

  unwatch(index: number): void {
    this.#workers.delete(index);
  }

  /** How often to look; null when there is nothing to look after. */
  get checkIntervalMs(): number | null {
    if (this.#workers.size === 0) return null;
    return Math.max(10, Math.min(...[...this.#workers.values()].map(({ leaseMs }) => leaseMs)) / 30);
  }

  async check(now: number): Promise<void> {
    const { heartbeats } = this.#options.frames;
    const everyMs = this.checkIntervalMs;
    if (heartbeats !== this.#lastHeartbeats || everyMs === null) {
      this.#lastHeartbeats = heartbeats;
      this.#checksWithoutHeartbeat = 0;
      this.#hasWarned = false;
      this.#ownedRunIds.clear();
      return this.#disconnect();
    }
    this.#checksWithoutHeartbeat += 1;
    const withoutHeartbeatMs = this.#checksWithoutHeartbeat * everyMs;
    const blockedWorkers = [...this.#workers.values()].filter(
      ({ leaseMs }) => withoutHeartbeatMs >= leaseMs * connectAtLeaseFraction,
    );
    if (blockedWorkers.length === 0 || this.#isReporting) return;
    this.#isReporting = true;
    try {
      // Connected beforehand: that may take longer than there is time at the end.
      this.#store ??= this.#options.openStore();
      const store = await this.#store;
      for (const worker of blockedWorkers) {
        const owned = await this.#readOwnedRunIds(store, worker);
        if (now - worker.renewedAt >= worker.leaseMs * reportAtLeaseFraction) await this.#report(store, worker, owned);
      }
    } catch (error) {
      // The next look tries again; if none succeeds the leases run out, which frees the runs as well.
      await this.#disconnect();
      if (!this.#hasWarned) this.#options.print(`A blocked event loop could not be reported yet: ${String(error)}`);
      this.#hasWarned = true;
    } finally {
      this.#isReporting = false;
    }
  }

  async #readOwnedRunIds(store: WatchdogStore, { index, fence }: WatchedWorker): Promise<readonly string[]> {
    const known = this.#ownedRunIds.get(index);
    if (known !== undefined) return known;
    const owned = (await store.ownedTasks(fence)).map(({ runId }) => runId);
    this.#ownedRunIds.set(index, owned);
    return owned;
  }

  async #report(store: WatchdogStore, worker: WatchedWorker, owned: readonly string[]): Promise<void> {
    const { fence, name, index } = worker;
    const session = `${fence.workerId}/${fence.epoch}`;
    const culprit = this.#options.frames.top() ?? this.#onlyOwnedRun(index, owned);
    const receiverIds = new Set(owned);
    if (culprit?.worker === index) receiverIds.add(culprit.runId);
    const messages = [...receiverIds].map((runId) => {
      const isCulprit = culprit?.runId === runId;
      const by = culprit === null || isCulprit ? null : culprit.runId;
      const step = isCulprit ? culprit.step : null;
      return encodeMessage(runId, { type: "blocked", worker: name, session, step, by });
    });
    await store.send(messages);
    await store.deregisterWorker(fence);
    this.#workers.delete(index);
    this.#options.print(describe(name, culprit, owned.length));
  }

  #onlyOwnedRun(worker: number, owned: readonly string[]): Frame | null {
    const [runId] = owned;
    return this.#workers.size === 1 && owned.length === 1 && runId !== undefined ? { worker, runId, step: "" } : null;
  }

  async #disconnect(): Promise<void> {
    const store = this.#store;
    this.#store = null;
    try {
      await (await store)?.close();
    } catch {
      // It could not be opened, or is gone: there is nothing left to close.
    }
  }
}

function describe(worker: string, culprit: Frame | null, runs: number): string {
  const by =
    culprit === null
      ? "It is not known by which of its runs."
      : `It is run ${culprit.runId}${culprit.step === "" ? "" : `, step "${culprit.step}"`}.`;
  return `Worker "${worker}" of process ${process.pid} is blocked: its event loop stands still. ${by} Its ${runs} run(s) go on elsewhere; this process does nothing until that code returns.`;
}
