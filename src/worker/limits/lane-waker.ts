/**
 * What lanes have free slots again. An admission of this worker takes them with it, so that the next run begins without a
 * further statement; when the worker admits nothing, the store is told, and opens the classes that were blocked on the lanes for
 * all workers. One call is under way at a time; what is freed meanwhile is gathered for the next.
 */
import type { Logger } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { FreedSlots, Limits } from "../../store/contract/limits.js";
import { inCleanContext } from "../../telemetry/async-context.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";

/** A process may die, or lose its connection, between a commit that frees slots and the call that names them. */
const sweepIntervalMs = 5_000;
const sweepsPerTidying = 12;
const maxLanesPerCall = 1_000;
const keptFreedMs = 20;
/** As long as admissions take what is kept, it is kept longer, but no longer than this many times. */
const maxKeptTimes = 10;

export class LaneWaker {
  readonly #limits: Limits;
  readonly #log: Logger;
  readonly #runtime: Runtime;
  #freed = new Map<string, number>();
  #mustSweep = false;
  #pending: Promise<void> | null = null;
  #sweepTimer: Timer | null = null;
  #keepTimer: Timer | null = null;
  #keptTimes = 0;
  #hasTaken = false;
  #sweepCount = 0;
  #admitSoon: (() => boolean) | null = null;
  #onSweep: ((isHousekeeping: boolean) => Promise<void>) | null = null;

  constructor(limits: Limits, log: Logger, runtime: Runtime) {
    this.#limits = limits;
    this.#log = log;
    this.#runtime = runtime;
  }

  start(): void {
    this.sweepSoon();
    this.#sweepTimer = this.#runtime
      .setTimeout(() => {
        this.start();
      }, sweepIntervalMs)
      .unref();
  }

  stop(): void {
    this.#runtime.clearTimeout(this.#sweepTimer);
    this.#runtime.clearTimeout(this.#keepTimer);
    this.#admitSoon = null;
  }

  /** @param admitSoon makes the worker admit runs, and calls `takeFreed` for it; returns false if it admits none now */
  onFreed(admitSoon: () => boolean): void {
    this.#admitSoon = admitSoon;
  }

  /** @param look called every few seconds; with true when the worker starts, and once a minute */
  onSweep(look: (isHousekeeping: boolean) => Promise<void>): void {
    this.#onSweep = look;
  }

  /** Resolves when the store knows of everything that was freed so far. */
  async settled(): Promise<void> {
    while (this.#pending !== null) await this.#pending;
  }

  free(slots: readonly FreedSlots[]): void {
    if (slots.length === 0) return;
    for (const { lane, count } of slots) this.#freed.set(lane, (this.#freed.get(lane) ?? 0) + count);
    if (this.#admitSoon === null) this.#sendSoon();
    else if (!this.#admitSoon()) this.keepFreedBriefly();
  }

  get hasFreed(): boolean {
    return this.#freed.size > 0;
  }

  /**
   * What an admission that begins now has to look at, those first that were freed first. An admission locks all of these lanes,
   * so it gets no more than it can use. The caller must call `free` again if the admission fails.
   */
  takeFreed(limit: number): readonly FreedSlots[] {
    const freed = [...this.#freed].slice(0, limit).map(([lane, count]) => ({ lane, count }));
    for (const { lane } of freed) this.#freed.delete(lane);
    if (freed.length > 0) this.#hasTaken = true;
    return freed;
  }

  /**
   * Called when the worker has no room for further runs. A run that gives its slot back makes room a moment later, so what is free
   * is kept for the next admission, which takes it without a further statement. Then other workers may take it. A busy worker
   * with many lanes takes them a part at a time, and to announce the rest would open and block each class once more.
   */
  keepFreedBriefly(): void {
    if (this.#freed.size === 0 || this.#keepTimer !== null) return;
    this.#hasTaken = false;
    this.#keepTimer = this.#runtime.setTimeout(() => {
      this.#keepTimer = null;
      this.#keptTimes += 1;
      if (this.#hasTaken && this.#keptTimes < maxKeptTimes) return this.keepFreedBriefly();
      this.#keptTimes = 0;
      this.sendFreed();
    }, keptFreedMs);
  }

  /** Tells the store what an admission was to take with it, because the worker admits nothing after all. */
  sendFreed(): void {
    if (this.#freed.size > 0) this.#sendSoon();
  }

  /** Looks at all lanes on which classes are blocked, not only at those that this worker has freed. */
  sweepSoon(): void {
    this.#mustSweep = true;
    this.#sendSoon();
  }

  #sendSoon(): void {
    this.#pending ??= inCleanContext(() => this.#send());
  }

  async #send(): Promise<void> {
    // Slots that are freed by the same commit are gathered first.
    await null;
    try {
      while (this.#freed.size > 0 || this.#mustSweep) {
        const freed = this.takeFreed(maxLanesPerCall);
        const mustSweep = this.#mustSweep;
        this.#mustSweep = false;
        if (freed.length > 0) await this.#limits.wake(freed);
        if (mustSweep) await this.#sweep();
      }
    } catch (error) {
      warnOfRetry(this.#log, "Free slots of limits could not be announced; that is repeated in a few seconds.", error);
    } finally {
      this.#pending = null;
    }
  }

  async #sweep(): Promise<void> {
    await this.#limits.sweep();
    this.#sweepCount += 1;
    await this.#onSweep?.(this.#sweepCount % sweepsPerTidying === 1);
    if (this.#sweepCount % sweepsPerTidying === 0) await this.#limits.tidy();
  }
}
