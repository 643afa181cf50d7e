/**
 * Notices commits of other processes. The operating system reports writes to the WAL file, and `hasChanged` (PRAGMA
 * data_version) says whether another connection has committed. While the file is idle, nothing runs.
 */

import { type FSWatcher, watch } from "node:fs";
import type { Runtime, Timer } from "../../runtime/runtime.js";

/**
 * The delays before the checks that follow a write to the file. The operating system reports the write before the
 * commit is visible: the writer still has to sync the file and to update shared memory, which the system does not
 * report. So the watch checks repeatedly, with growing delays. It does not stop at the first change, which may belong
 * to an earlier commit than the reported one.
 */
const checkDelaysMs = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];
/**
 * The delay before a replaced or missing file is watched again. It starts at `first`, doubles with each attempt and
 * stays at `last`.
 */
const rewatchDelayMs = { first: 50, last: 5_000 };

export interface FileWatchOptions {
  readonly runtime: Runtime;
  readonly file: string;
  /** Whether another connection has committed since the last call. */
  readonly hasChanged: () => boolean;
  readonly onChange: () => void;
  readonly onWarning: (error: unknown) => void;
}

export class FileWatch {
  readonly #options: FileWatchOptions;
  #watcher: FSWatcher | undefined;
  #timer: Timer | undefined;
  #checkCount = 0;
  #rewatchDelayMs = rewatchDelayMs.first;
  #isStopped = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
    // The first call only records the current version of the data, which later calls compare with.
    options.hasChanged();
    this.#watch();
  }

  stop(): void {
    this.#isStopped = true;
    this.#options.runtime.clearTimeout(this.#timer);
    this.#watcher?.close();
  }

  #watch(): boolean {
    try {
      // A persistent watcher would keep a process alive that has nothing else to do.
      const watcher = watch(this.#options.file, { persistent: false }, (event) => {
        if (event === "rename") this.#scheduleRewatch(watcher);
        else this.#onFileWritten();
      });
      watcher.on("error", () => this.#scheduleRewatch(watcher));
      this.#watcher = watcher;
      this.#rewatchDelayMs = rewatchDelayMs.first;
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") this.#scheduleRewatch(undefined);
      // The file cannot be watched, for instance because the machine's limit of watches is reached. Workers and clients
      // still poll.
      else this.#options.onWarning(error);
      return false;
    }
  }

  /** Called when the file was replaced or does not exist yet. */
  #scheduleRewatch(watcher: FSWatcher | undefined): void {
    if (this.#isStopped || watcher !== this.#watcher) return;
    watcher?.close();
    this.#watcher = undefined;
    this.#schedule(this.#rewatchDelayMs, () => {
      this.#rewatchDelayMs = Math.min(this.#rewatchDelayMs * 2, rewatchDelayMs.last);
      // Commits since the old watch ended were not noticed, so a change is reported without a check.
      if (this.#watch()) this.#options.onChange();
    });
  }

  #onFileWritten(): void {
    if (this.#isStopped || this.#watcher === undefined) return;
    // The first check after a write is already scheduled, and the later ones follow it.
    if (this.#timer !== undefined && this.#checkCount === 0) return;
    this.#checkCount = 0;
    this.#scheduleCheck();
  }

  #scheduleCheck(): void {
    const afterMs = checkDelaysMs[this.#checkCount];
    if (afterMs === undefined) return;
    this.#schedule(afterMs, () => {
      this.#checkCount += 1;
      if (this.#options.hasChanged()) {
        this.#checkCount = 0;
        this.#options.onChange();
      }
      this.#scheduleCheck();
    });
  }

  #schedule(ms: number, work: () => void): void {
    const { runtime } = this.#options;
    runtime.clearTimeout(this.#timer);
    this.#timer = runtime
      .setTimeout(() => {
        this.#timer = undefined;
        if (!this.#isStopped) work();
      }, ms)
      .unref();
  }
}
