/** Processes that die, and answers that never arrive: no start that is gathered is lost, and none is gathered twice. */
import { randomUUID } from "node:crypto";
import { Pawl, StoreError, type Worker, workflow } from "pawl";
import { afterEach, expect, test } from "vitest";
import type { Store } from "../../src/store/contract/store.js";
import { forMemoryAnd } from "../support/effort.js";
import { databaseFor, silent, start, type World } from "../support/virtual-worlds.js";

const pass = ({ clock }: World, ms: number) => clock.moveTo(clock.read() + ms);
const batch = { size: 3, within: "2s" } as const;
const whens = ["before", "after"] as const;
type When = (typeof whens)[number];

/** A process whose nth write is lost with the process, or is its last. */
class DyingStore {
  readonly store: Store;
  readonly died: Promise<"dead">;
  writes = 0;
  #isDead = false;
  #fence: Awaited<ReturnType<Store["registerWorker"]>> | null = null;
  #resolveDeath: () => void = () => {};
  readonly #point: { readonly write: number; readonly when: When } | null;
  readonly #inner: Store;

  constructor(inner: Store, point: { readonly write: number; readonly when: When } | null) {
    this.#inner = inner;
    this.#point = point;
    this.died = new Promise((resolve) => {
      this.#resolveDeath = () => resolve("dead");
    });
    this.store = this.#mortal(inner);
  }

  #mortal<T extends object>(part: T): T {
    return new Proxy(part, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown;
        if (name === "gatherings") return this.#mortal(value as object);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (this.#isDead) return name === "watch" ? () => {} : new Promise(() => {});
          const call = () => Reflect.apply(value, target, args) as unknown;
          if (name === "commit" || name === "begin") return this.#write(call);
          const answer = call();
          if (!(answer instanceof Promise)) return answer;
          return answer.then((result) => {
            if (name === "registerWorker") this.#fence = result;
            return this.#isDead ? new Promise(() => {}) : result;
          });
        };
      },
    });
  }

  async #write(call: () => unknown): Promise<unknown> {
    this.writes += 1;
    if (this.#point?.write !== this.writes) return call();
    this.#isDead = true;
    if (this.#point.when === "after") await call();
    this.#resolveDeath();
    return new Promise(() => {});
  }

  async expireLease(): Promise<void> {
    if (this.#fence !== null) await this.#inner.deregisterWorker(this.#fence);
  }
}

/** A client to which some answers of the database do not arrive. */
function withLostAnswers(store: Store, mode: (call: number) => When | null): Store {
  let calls = 0;
  const gatherings = new Proxy(store.gatherings, {
    get: (target, name) => {
      const value = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>;
      if (name !== "gather") return value.bind(target);
      return async (...args: unknown[]) => {
        const when = mode((calls += 1));
        if (when === "before") throw new StoreError("The connection was lost.", { transient: true });
        const answer = await Reflect.apply(value, target, args);
        if (when === "after") throw new StoreError("The connection was lost.", { transient: true });
        return answer;
      };
    },
  });
  return new Proxy(store, {
    get: (target, name) => {
      if (name === "gatherings") return gatherings;
      const value = Reflect.get(target, name) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

forMemoryAnd("postgres", (kind) => {
  const database = databaseFor(kind);

  /** A worker waits a while for what its dead store never answers, so all of them are stopped at once. */
  const workersThatDie: Worker[] = [];
  afterEach(async () => {
    await Promise.all(workersThatDie.splice(0).map((worker) => worker.stop()));
  });

  /** Takes one batch of three starts to its end; the first worker dies at a write. */
  async function tell(w: World, point: { readonly write: number; readonly when: When } | null) {
    const seen: string[] = [];
    const mail = workflow(`mail ${randomUUID()}`, { batch }, async (ctx, texts: string[]) => {
      seen.push(texts.join());
      const ids = await ctx.step("send", () => texts.map((text) => `sent ${text}`));
      await ctx.sleep("pause", "1s");
      return ids;
    });
    const runs = await w.pawl.startMany(mail, ["a", "b"]);
    const dying = new DyingStore(w.store, point);
    const first = new Pawl(dying.store, silent).worker({ workflows: [mail], poll: Number.POSITIVE_INFINITY, grace: 1 });
    workersThatDie.push(first);
    await first.start();
    const settle = () => Promise.race([first.runUntilIdle(), dying.died]);
    pass(w, 2_000);
    if ((await settle()) !== "dead") {
      pass(w, 1_000);
      await settle();
    }
    await dying.expireLease();
    runs.push(await w.pawl.start(mail, "c"));
    const { settle: goOn } = await w.worker([mail]);
    for (const ms of [0, 1_000, 1_000, 1_000]) {
      pass(w, ms);
      await goOn();
    }
    const results = await Promise.all(runs.map((run) => run.result({ timeout: "100s" })));
    expect(results).toEqual(["sent a", "sent b", "sent c"]);
    expect(new Set(seen)).toEqual(new Set(["a,b", "c"]));
    return dying.writes;
  }

  test("a worker that dies at any write leaves every start of the batch to the next, with the same list", async () => {
    const w = await database.world();
    const writes = await tell(w, null);
    expect(writes).toBeGreaterThan(2);
    for (let write = 1; write <= writes; write += 1) for (const when of whens) await tell(w, { write, when });
    expect((await w.pawl.verify()).differences).toEqual([]);
  }, 120_000);

  test("a start whose answer is lost is repeated, and gathered once", async () => {
    const w = await database.world();
    const lists: string[][] = [];
    const mail = workflow(
      `mail ${randomUUID()}`,
      { batch: { size: 4, within: "2s" } },
      async (_ctx, texts: string[]) => {
        lists.push(texts);
        return texts;
      },
    );
    const index = workflow(`index ${randomUUID()}`, async (_ctx, texts: string[]) => texts.length);
    const client = new Pawl(
      withLostAnswers(w.store, (call) => (["before", "after", null] as const)[call % 3] ?? null),
      silent,
    );
    const texts = Array.from({ length: 10 }, (_, n) => `${n}`);
    const runs = [];
    for (const text of texts) runs.push(await client.start(mail, text));
    const debounce = { key: "k", quiet: "1s", keep: "all" } as const;
    const debounced = [];
    for (const text of texts) debounced.push(await client.start(index, text, { debounce }));
    const { settle } = await w.worker([mail, index]);
    pass(w, 2_000);
    await settle();
    expect(await Promise.all(runs.map((run) => run.result({ timeout: "100s" })))).toEqual(texts);
    expect(lists.flat().toSorted()).toEqual(texts);
    expect(new Set(debounced.map(({ id }) => id)).size).toBe(1);
    expect(await debounced[0]?.result({ timeout: "100s" })).toBe(10);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

test("crashTest takes a workflow with batches through a crash at every commit", async () => {
  const mail = workflow("mail", { batch }, async (ctx, texts: string[]) => {
    const ids = await ctx.step("send", () => texts.map((text) => `sent ${text}`));
    await ctx.sleep("pause", "1s");
    return ctx.step("note", () => ids);
  });
  const t = await start(mail);
  await t.crashTest(mail, "a");
});
