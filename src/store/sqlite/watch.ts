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
const looksAfterMs = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];
/** How soon a file that is gone is looked for again, at first and at last. */
const rewatchMs = { first: 50, last: 5_000 };

export interface FileWatchOptions {
  readonly runtime: Runtime;
  readonly file: string;
  /** Whether somebody else has committed since it was last asked. */
  readonly hasChanged: () => boolean;
  readonly onChange: () => void;
  readonly onTrouble: (error: unknown) => void;
}

export class FileWatch {
  readonly #options: FileWatchOptions;
  #watcher: FSWatcher | undefined;
  #timer: Timer | undefined;
  #looks = 0;
  #rewatchMs = rewatchMs.first;
  #stopped = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
    options.hasChanged();
    this.#watch();
  }

  stop(): void {
    this.#stopped = true;
    this.#options.runtime.clearTimeout(this.#timer);
    this.#watcher?.close();
  }

  #watch(): boolean {
    try {
      // Not persistent: a process that has nothing else to do may end.
      const watcher = watch(this.#options.file, { persistent: false }, (event) => {
        if (event === "rename") this.#watchAgain(watcher);
        else this.#written();
      });
      watcher.on("error", () => this.#watchAgain(watcher));
      this.#watcher = watcher;
      this.#rewatchMs = rewatchMs.first;
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") this.#watchAgain(undefined);
      // Too many watches on this machine, for instance. Polling is enough.
      else this.#options.onTrouble(error);
      return false;
    }
  }

  /** The file was replaced or is not there yet. */
  #watchAgain(watcher: FSWatcher | undefined): void {
    if (this.#stopped || watcher !== this.#watcher) return;
    watcher?.close();
    this.#watcher = undefined;
    this.#later(this.#rewatchMs, () => {
      this.#rewatchMs = Math.min(this.#rewatchMs * 2, rewatchMs.last);
      // What was written meanwhile was missed.
      if (this.#watch()) this.#options.onChange();
    });
  }

  #written(): void {
    if (this.#stopped || this.#watcher === undefined) return;
    // A look is due soon anyway; the later ones begin again after it.
    if (this.#timer !== undefined && this.#looks === 0) return;
    this.#looks = 0;
    this.#lookLater();
  }

  #lookLater(): void {
    const afterMs = looksAfterMs[this.#looks];
    if (afterMs === undefined) return;
    this.#later(afterMs, () => {
      this.#looks += 1;
      if (this.#options.hasChanged()) {
        this.#looks = 0;
        this.#options.onChange();
      }
      this.#lookLater();
    });
  }

  #later(ms: number, work: () => void): void {
    const { runtime } = this.#options;
    runtime.clearTimeout(this.#timer);
    this.#timer = runtime
      .setTimeout(() => {
        this.#timer = undefined;
        if (!this.#stopped) work();
      }, ms)
      .unref();
  }
}
