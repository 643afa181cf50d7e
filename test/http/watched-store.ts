/** A store that counts the calls of Pawl and who watches it, and that a test can make fail. */
import type { Hint, Store } from "../../src/store/contract/store.js";

export class WatchedStore {
  /** How often each method was called. */
  readonly calls = new Map<string, number>();
  /** Who listens for hints. */
  readonly watchers = new Set<object>();
  /** How many hints they have got. */
  hintCount = 0;
  /** If this is set, every call fails with what it returns. */
  failure: (() => Error) | null = null;
  /** If this is set, a call is made when the promise that it returns for the method's name has resolved. */
  delay: ((path: string) => Promise<void> | undefined) | null = null;

  callsOf(...names: readonly string[]): number {
    return names.reduce((sum, name) => sum + (this.calls.get(name) ?? 0), 0);
  }

  /** For `serve({ wrapStore })`. */
  readonly wrap = (inner: Store): Store => this.#observe(inner, "") as Store;

  #observe(inner: object, prefix: string): object {
    return new Proxy(inner, {
      get: (target, name) => {
        const path = prefix + String(name);
        const member = Reflect.get(target, name, target) as unknown;
        if (path === "watch") return (listener: (hint: Hint) => void) => this.#watch(inner as Store, listener);
        if (typeof member === "function") return this.#counted(path, member.bind(target));
        return typeof member === "object" && member !== null ? this.#observe(member, `${path}.`) : member;
      },
    });
  }

  #counted(path: string, call: (...args: unknown[]) => unknown) {
    return (...args: unknown[]) => {
      this.calls.set(path, (this.calls.get(path) ?? 0) + 1);
      if (this.failure !== null && path !== "close") return Promise.reject(this.failure());
      const delayed = this.delay?.(path);
      return delayed === undefined ? call(...args) : delayed.then(() => call(...args));
    };
  }

  #watch(inner: Store, listener: (hint: Hint) => void): () => void {
    const watcher = {};
    this.watchers.add(watcher);
    const stop = inner.watch((hint) => {
      this.hintCount += 1;
      listener(hint);
    });
    return () => {
      this.watchers.delete(watcher);
      stop();
    };
  }
}
