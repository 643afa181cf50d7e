/**
 * Tells how far the logs of watched runs have grown. Each run is polled once, however many clients watch it. The clients
 * read the events themselves, by their numbers, so that each sees every event once and in order.
 */
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { Hint, Store } from "../../store/contract/store.js";

const shortestPollMs = 200;
const longestPollMs = 1_000;
const pollGrowth = 1.5;

/** How far a run has come. */
export interface RunProgress {
  readonly lastEvent: number;
  readonly hasEnded: boolean;
}

export interface RunWatch {
  /** Resolves when the log has grown beyond this event or the run has ended; null: the watch was closed. */
  after(event: number): Promise<RunProgress | null>;
  close(): void;
}

export class RunFeeds {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #feeds = new Map<string, RunFeed>();
  #unwatch: (() => void) | null = null;

  constructor(store: Store, runtime: Runtime) {
    this.#store = store;
    this.#runtime = runtime;
  }

  /** @param onClose called once, when the watch is closed */
  watch(runId: string, onClose: () => void): RunWatch {
    this.#unwatch ??= this.#store.watch((hint) => this.#onHint(hint));
    const feed = this.#feeds.get(runId) ?? new RunFeed(this.#store, this.#runtime, runId);
    this.#feeds.set(runId, feed);
    const watch = feed.watch();
    return {
      after: (event) => watch.after(event),
      close: () => {
        watch.close();
        if (feed.isUnwatched && this.#feeds.get(runId) === feed) this.#feeds.delete(runId);
        if (this.#feeds.size === 0) {
          this.#unwatch?.();
          this.#unwatch = null;
        }
        onClose();
      },
    };
  }

  #onHint(hint: Hint): void {
    if (!("runIds" in hint)) {
      if (hint.kind === "anything") for (const feed of this.#feeds.values()) feed.pollNow();
      return;
    }
    for (const runId of hint.runIds) this.#feeds.get(runId)?.pollNow();
  }
}

interface Waiter {
  /** The watch that it belongs to. */
  readonly watch: RunWatch;
  readonly event: number;
  readonly resolve: (progress: RunProgress | null) => void;
  readonly reject: (error: unknown) => void;
}

class RunFeed {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #runId: string;
  readonly #waiters = new Set<Waiter>();
  #watchCount = 0;
  #progress: RunProgress = { lastEvent: -1, hasEnded: false };
  #timer: Timer | null = null;
  #pollMs = shortestPollMs;
  #isPolling = false;
  #mustPollAgain = false;

  constructor(store: Store, runtime: Runtime, runId: string) {
    this.#store = store;
    this.#runtime = runtime;
    this.#runId = runId;
  }

  get isUnwatched(): boolean {
    return this.#watchCount === 0;
  }

  watch(): RunWatch {
    this.#watchCount += 1;
    const watch: RunWatch = {
      after: (event) =>
        new Promise((resolve, reject) => {
          const waiter: Waiter = { watch, event, resolve, reject };
          this.#waiters.add(waiter);
          this.#answerWaiters();
          // Another client that begins to wait is no reason to ask the database again: what is known is a poll interval old.
          if (this.#progress.lastEvent < 0) this.#beginPolling();
          else this.#schedulePoll();
        }),
      close: () => {
        this.#watchCount -= 1;
        for (const waiter of this.#waiters) {
          if (waiter.watch !== watch) continue;
          this.#waiters.delete(waiter);
          waiter.resolve(null);
        }
        if (this.#waiters.size === 0) this.#cancelPoll();
      },
    };
    return watch;
  }

  /** The run may have changed. */
  pollNow(): void {
    if (this.#isPolling) this.#mustPollAgain = true;
    else void this.#poll();
  }

  #beginPolling(): void {
    if (!this.#isPolling) void this.#poll();
  }

  /** Sets the timer of the next poll, unless there is one or no client waits. */
  #schedulePoll(): void {
    if (this.#isPolling || this.#timer !== null || this.#waiters.size === 0) return;
    this.#timer = this.#runtime.setTimeout(() => {
      this.#timer = null;
      this.pollNow();
    }, this.#pollMs);
  }

  #cancelPoll(): void {
    this.#runtime.clearTimeout(this.#timer);
    this.#timer = null;
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    this.#cancelPoll();
    try {
      do {
        this.#mustPollAgain = false;
        await this.#read();
      } while (this.#mustPollAgain && this.#waiters.size > 0);
    } catch (error) {
      for (const waiter of this.#waiters) waiter.reject(error);
      this.#waiters.clear();
    } finally {
      this.#isPolling = false;
    }
    this.#schedulePoll();
  }

  async #read(): Promise<void> {
    // The task is read first: a run that has a task then may end before the second read, which the next poll notices.
    const [task] = await this.#store.tasks([this.#runId]);
    const lastEvent = await this.#store.maintenance.questions.lastEventSeq(this.#runId);
    const progress = { lastEvent, hasEnded: task === undefined };
    const hasChanged = lastEvent !== this.#progress.lastEvent || progress.hasEnded !== this.#progress.hasEnded;
    this.#pollMs = hasChanged ? shortestPollMs : Math.min(longestPollMs, this.#pollMs * pollGrowth);
    this.#progress = progress;
    this.#answerWaiters();
  }

  #answerWaiters(): void {
    const { lastEvent, hasEnded } = this.#progress;
    for (const waiter of this.#waiters) {
      if (lastEvent <= waiter.event && !hasEnded) continue;
      this.#waiters.delete(waiter);
      waiter.resolve(this.#progress);
    }
  }
}
