/**
 * Watches files through their folders, because editors replace a file instead of writing it. Reports a file only if its
 * content has changed.
 */

import { createHash } from "node:crypto";
import { type FSWatcher, readFileSync, watch } from "node:fs";
import { dirname } from "node:path";
import type { Timer } from "../../runtime/runtime.js";
import { systemRuntime } from "../../runtime/system.js";

/**
 * The delay before changes are reported: a file that is being saved may be empty for a moment, and editors save several
 * files together.
 */
const debounceMs = 100;

export class FileWatcher {
  readonly #onChange: (files: readonly string[]) => void;
  readonly #contentHashes = new Map<string, string | null>();
  readonly #folders = new Map<string, FSWatcher>();
  #timer: Timer | null = null;

  constructor(onChange: (files: readonly string[]) => void) {
    this.#onChange = onChange;
  }

  /** Reports changes of this file from now on. */
  add(file: string): void {
    if (this.#contentHashes.has(file)) return;
    this.#contentHashes.set(file, contentHashOf(file));
    const folder = dirname(file);
    if (this.#folders.has(folder)) return;
    try {
      const watcher = watch(folder, () => this.#scheduleCompare());
      watcher.on("error", () => watcher.close());
      this.#folders.set(folder, watcher);
    } catch {
      // The folder has been deleted. The next load of the code reports the missing file.
    }
  }

  close(): void {
    systemRuntime.clearTimeout(this.#timer);
    for (const watcher of this.#folders.values()) watcher.close();
    this.#folders.clear();
  }

  #scheduleCompare(): void {
    this.#timer ??= systemRuntime.setTimeout(() => {
      this.#timer = null;
      this.#compare();
    }, debounceMs);
  }

  #compare(): void {
    const changedFiles: string[] = [];
    for (const [file, previousHash] of this.#contentHashes) {
      const currentHash = contentHashOf(file);
      if (currentHash === previousHash) continue;
      this.#contentHashes.set(file, currentHash);
      changedFiles.push(file);
    }
    if (changedFiles.length > 0) this.#onChange(changedFiles);
  }
}

function contentHashOf(file: string): string | null {
  try {
    return createHash("sha256").update(readFileSync(file)).digest("hex");
  } catch {
    return null;
  }
}
