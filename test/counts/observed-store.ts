/** A store as the engine sees it, which counts calls and can hold back hints. */
import type { Hint, Maintenance, Store, StoreTransaction } from "../../src/store/contract/store.js";

type Listener = (hint: Hint) => void;

export class ObservedStore {
  /** The store for the engine. */
  readonly store: Store;
  /** How often each method was called. */
  readonly calls = new Map<string, number>();
  /** Calls without an answer yet. */
  pending = 0;
  /** Resolves with the first hint of the store itself: on PostgreSQL, that its listener is connected. */
  readonly heard: Promise<void>;
  readonly #listeners = new Set<Listener>();
  #held: Hint[] | null = null;

  constructor(inner: Store) {
    let hear = () => {};
    this.heard = new Promise((resolve) => {
      hear = resolve;
    });
    this.store = new Proxy(inner, { get: (target, name) => this.#member(target, String(name)) });
    inner.watch((hint) => {
      hear();
      this.#deliver(hint);
    });
  }

  /** Delivers no hints, as if all listeners were in other processes, until `releaseHints`. */
  holdHints(): void {
    this.#held ??= [];
  }

  releaseHints(): void {
    const hints = this.#held ?? [];
    this.#held = null;
    for (const hint of hints) this.#deliver(hint);
  }

  /** Triggers a poll, as a timer does when a run is due. */
  nudge(): void {
    this.#deliver({ kind: "ready", workflows: [] });
  }

  #deliver(hint: Hint): void {
    if (this.#held !== null) this.#held.push(hint);
    else for (const listener of this.#listeners) listener(hint);
  }

  #member(inner: Store, name: string): unknown {
    if (name === "watch") return (listener: Listener) => this.#watch(listener);
    const member = Reflect.get(inner, name) as unknown;
    if (name === "maintenance") return withoutFigures(inner.maintenance);
    if (typeof member !== "function") return member;
    return (...args: unknown[]) => this.#call(name, () => Reflect.apply(member, inner, args) as Promise<unknown>);
  }

  #watch(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #call(name: string, method: () => Promise<unknown>): Promise<unknown> {
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    this.pending += 1;
    try {
      const answer = await method();
      return name === "beginTransaction" ? this.#transaction(answer as StoreTransaction) : answer;
    } finally {
      this.pending -= 1;
    }
  }

  #transaction(begun: StoreTransaction): StoreTransaction {
    const call = (name: string, method: () => Promise<any>) => this.#call(`${name} of a transaction`, method);
    return {
      handle: begun.handle,
      commit: (batch) => call("commit", () => begun.commit(batch)) as ReturnType<StoreTransaction["commit"]>,
      rollback: (options) => call("rollback", () => begun.rollback(options)) as Promise<void>,
    };
  }
}

/** Figures are written by time, ten seconds after a run has begun: on a slow machine, in the middle of a measurement. */
function withoutFigures(maintenance: Maintenance): Maintenance {
  const questions = redirected(maintenance.questions, { addFigures: async () => {} });
  return redirected(maintenance, { questions });
}

/** The object with other members in place of its own. */
const redirected = <T extends object>(object: T, members: Partial<T>): T =>
  new Proxy(object, {
    get: (target, name) => {
      if (Object.hasOwn(members, name)) return members[name as keyof T];
      const member = Reflect.get(target, name) as unknown;
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
