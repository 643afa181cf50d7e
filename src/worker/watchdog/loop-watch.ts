/**
 * Watches the event loop of a process from another thread. If the loop is blocked until the leases of its workers are about
 * to expire, the watchdog sends each run of those workers a message that names the run whose code blocks the loop, and
 * deregisters the workers. Other workers then claim the runs at once, and no crash is counted against the runs.
 *
 * The messages are sent before the leases expire: if another worker freed the runs first, each of them would count a crash.
 */
import { encodeMessage } from "../../core/run/message.js";
import type { Fence, Store } from "../../store/contract/store.js";
import type { Frame, Frames } from "./frames.js";

export interface WatchedWorker {
  /** The index of the worker in this process, which is also the value of `Frame.worker`. */
  readonly index: number;
  readonly name: string;
  readonly fence: Fence;
  readonly leaseMs: number;
  /** When the lease was last renewed, by `Runtime.processMonotonic`. */
  readonly renewedAt: number;
}

export interface LoopWatchOptions {
  readonly frames: Frames;
  /** Opens a separate connection, because the connections of the blocked thread cannot be used. */
  openStore(): Promise<Pick<Store, "ownedTasks" | "send" | "deregisterWorker" | "close">>;
  /** Prints a line for humans, because the logger belongs to the blocked thread. */
  print(text: string): void;
}

type WatchdogStore = Awaited<ReturnType<LoopWatchOptions["openStore"]>>;

/** The watchdog connects to the store when the event loop has not sent a heartbeat for a third of a lease. */
const connectAtLeaseFraction = 1 / 3;
/**
 * The watchdog reports when 90 % of a lease have passed since its renewal, so that a tenth is left to write the report.
 */
const reportAtLeaseFraction = 0.9;

export class LoopWatch {
  readonly #options: LoopWatchOptions;
  readonly #workers = new Map<number, WatchedWorker>();
  #lastHeartbeats = -1;
  /**
   * How many checks in a row found no new heartbeat of the event loop. Checks are counted instead of time, because after a
   * suspension of the whole process the first check would see a long time without a heartbeat.
   */
  #checksWithoutHeartbeat = 0;
  #store: Promise<WatchdogStore> | null = null;
  /** By worker: its runs. They are read early, because another worker may free them before the watchdog reports. */
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

  /** How often `check` must be called; null if there are no workers to watch. */
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
      // Connect early, because connecting may take longer than the time that is left for the report.
      this.#store ??= this.#options.openStore();
      const store = await this.#store;
      for (const worker of blockedWorkers) {
        const ownedRunIds = await this.#readOwnedRunIds(store, worker);
        if (now - worker.renewedAt >= worker.leaseMs * reportAtLeaseFraction)
          await this.#report(store, worker, ownedRunIds);
      }
    } catch (error) {
      // The next check tries again. If no check succeeds, the leases expire, and other workers free the runs.
      await this.#disconnect();
      if (!this.#hasWarned)
        this.#options.print(
          `A blocked event loop could not be reported yet; the watchdog tries again: ${String(error)}`,
        );
      this.#hasWarned = true;
    } finally {
      this.#isReporting = false;
    }
  }

  async #readOwnedRunIds(store: WatchdogStore, { index, fence }: WatchedWorker): Promise<readonly string[]> {
    const knownRunIds = this.#ownedRunIds.get(index);
    if (knownRunIds !== undefined) return knownRunIds;
    const ownedRunIds = (await store.ownedTasks(fence)).map(({ runId }) => runId);
    this.#ownedRunIds.set(index, ownedRunIds);
    return ownedRunIds;
  }

  async #report(store: WatchdogStore, worker: WatchedWorker, ownedRunIds: readonly string[]): Promise<void> {
    const { fence, name, index } = worker;
    const session = `${fence.workerId}/${fence.epoch}`;
    const culprit = this.#options.frames.top() ?? this.#onlyOwnedRun(index, ownedRunIds);
    const receiverIds = new Set(ownedRunIds);
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
    this.#options.print(describe(name, culprit, ownedRunIds.length));
  }

  /** If the process has one worker and that worker owns one run, that run must block the loop, even without a frame. */
  #onlyOwnedRun(worker: number, ownedRunIds: readonly string[]): Frame | null {
    const [runId] = ownedRunIds;
    return this.#workers.size === 1 && ownedRunIds.length === 1 && runId !== undefined
      ? { worker, runId, step: "" }
      : null;
  }

  async #disconnect(): Promise<void> {
    const store = this.#store;
    this.#store = null;
    try {
      await (await store)?.close();
    } catch {
      // The store could not be opened or its connection is lost, so there is nothing to close.
    }
  }
}

function describe(worker: string, culprit: Frame | null, runCount: number): string {
  const cause =
    culprit === null
      ? "It is unknown which of its runs blocks it."
      : `It is blocked by run ${culprit.runId}${culprit.step === "" ? "" : `, step "${culprit.step}"`}.`;
  return `Worker "${worker}" of process ${process.pid} is blocked: its event loop does not turn. ${cause} Other workers take its ${runCount} run(s); this process does nothing until that code returns.`;
}
