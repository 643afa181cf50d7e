/**
 * Wake-ups from other processes: the operating system tells of writes to the WAL file, and `hasChanged` (PRAGMA
 * data_version) whether they were somebody else's commit. An idle file costs nothing.
 */

import { type FSWatcher, watch } from "node:fs";
import type { Runtime, Timer } from "../../runtime/runtime.js";

/**
 * When to look after a write to the file. It is seen before the commit counts: the writer still syncs the file, and
 * what it does last (in shared memory) nobody is told of. So look again, ever later; a change found may be an earlier
 * commit's, with the one that was told of still on its way, so it is no reason to stop.
 */
const checkDelaysMs = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];
/** How soon a file that is gone is looked for again, at first and at last. */
const rewatchDelayMs = { first: 50, last: 5_000 };

export interface FileWatchOptions {
  readonly runtime: Runtime;
  readonly file: string;
  /** Whether somebody else has committed since it was last asked. */
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
      // Not persistent: a process that has nothing else to do may end.
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
      // Too many watches on this machine, for instance. Polling is enough.
      else this.#options.onWarning(error);
      return false;
    }
  }

  /** The file was replaced or is not there yet. */
  #scheduleRewatch(watcher: FSWatcher | undefined): void {
    if (this.#isStopped || watcher !== this.#watcher) return;
    watcher?.close();
    this.#watcher = undefined;
    this.#schedule(this.#rewatchDelayMs, () => {
      this.#rewatchDelayMs = Math.min(this.#rewatchDelayMs * 2, rewatchDelayMs.last);
      // What was written meanwhile was missed.
      if (this.#watch()) this.#options.onChange();
    });
  }

  #onFileWritten(): void {
    if (this.#isStopped || this.#watcher === undefined) return;
    // A look is due soon anyway; the later ones begin again after it.
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
