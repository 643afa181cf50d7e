/** Debounced starts: `start(…, { debounce })`. */
import { randomUUID } from "node:crypto";
import { graph, limit, type StepContext, step, Workflow, workflow } from "pawl";
import { expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { everyStoreBriefly } from "../support/effort.js";
import { databaseFor, keepWorking, type World } from "../support/virtual-worlds.js";
import { errorOf, gate, until } from "../support/waiting.js";

interface Doc {
  readonly id: string;
  readonly text: string;
}

const quietly = { key: "d1", quiet: "5s", max: "1m" } as const;

const pass = ({ clock }: World, ms: number) => clock.moveTo(clock.read() + ms);

/** Each test has workflows of its own, because the tests of one store share a database. */
function indexing() {
  const indexed: unknown[] = [];
  const index = workflow(`index ${randomUUID()}`, async (_ctx, doc: Doc) => void indexed.push(doc.text));
  return { indexed, index };
}

forEachStore((kind) => {
  const database = databaseFor(kind);

  test("debounce: the run is due when there was no further start for so long, and gets the last input", async () => {
    const { indexed, index } = indexing();
    const w = await database.world();
    const { settle } = await w.worker([index]);
    const first = await w.pawl.start(index, { id: "d1", text: "a" }, { debounce: quietly });
    expect(first).toMatchObject({ created: true, merged: false });
    pass(w, 4_000);
    const second = await w.pawl.start(index, { id: "d1", text: "b" }, { debounce: quietly });
    expect(second).toMatchObject({ id: first.id, created: false, merged: true });
    pass(w, 4_000);
    await settle();
    expect(indexed).toEqual([]);
    const { gathered, input, status } = await first.get();
    expect({ status, input }).toEqual({ status: "pending", input: { id: "d1", text: "b" } });
    expect(gathered).toMatchObject({ by: "debounce", key: "d1", starts: 2, isOpen: true });
    expect(gathered?.lastAt.getTime()).toBe((gathered?.firstAt.getTime() ?? 0) + 4_000);
    expect(await first.explain()).toMatchObject({
      because: "gathering",
      text: expect.stringContaining("2 so far"),
      until: new Date(w.clock.read() + 1_000),
    });
    pass(w, 1_000);
    await settle();
    expect(indexed).toEqual(["b"]);
    expect((await first.get()).gathered).toMatchObject({ starts: 2, isOpen: false });
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("debounce: the run is due at the latest `max` after the first start, by default ten times `quiet`", async () => {
    const { indexed, index } = indexing();
    const w = await database.world();
    const { settle } = await w.worker([index]);
    for (const [key, max] of [
      ["short", "12s"],
      ["default", undefined],
    ] as const) {
      const startedAt = w.clock.read();
      let dueAt = 0;
      const ids = new Set<string>();
      for (let second = 0; second < 60 && indexed.length === 0; second += 4) {
        const debounce = { key, quiet: "5s", ...(max === undefined ? {} : { max }) } as const;
        ids.add((await w.pawl.start(index, { id: key, text: key }, { debounce })).id);
        pass(w, 4_000);
        await settle();
        dueAt = w.clock.read() - startedAt;
      }
      expect({ key, dueAt, runs: ids.size }).toEqual({ key, dueAt: max === undefined ? 52_000 : 12_000, runs: 1 });
      indexed.length = 0;
    }
  });

  test("debounce: a call after the run began opens a new one", async () => {
    const began = gate();
    const goOn = gate();
    const texts: string[] = [];
    const index = workflow(`index ${randomUUID()}`, async (ctx, doc: Doc) => {
      texts.push(doc.text);
      if (doc.text === "a") began.open();
      await ctx.step("write", () => goOn.opened);
    });
    const w = await database.world();
    const { settle } = await w.worker([index]);
    const first = await w.pawl.start(index, { id: "d1", text: "a" }, { debounce: quietly });
    pass(w, 5_000);
    const settled = settle();
    await began.opened;
    const second = await w.pawl.start(index, { id: "d1", text: "b" }, { debounce: quietly });
    expect(second).toMatchObject({ created: true, merged: false });
    expect(second.id).not.toBe(first.id);
    const third = await w.pawl.start(index, { id: "d1", text: "c" }, { debounce: quietly });
    expect(third).toMatchObject({ id: second.id, merged: true });
    goOn.open();
    await settled;
    pass(w, 5_000);
    await settle();
    expect(texts).toEqual(["a", "c"]);
  });

  test("debounce: a start is also merged when the run is due and no worker has begun it", async () => {
    const { indexed, index } = indexing();
    const w = await database.world();
    const first = await w.pawl.start(index, { id: "d1", text: "a" }, { debounce: quietly });
    pass(w, 100_000);
    const late = await w.pawl.start(index, { id: "d1", text: "b" }, { debounce: quietly });
    expect(late).toMatchObject({ id: first.id, merged: true });
    const { settle } = await w.worker([index]);
    await settle();
    expect(indexed).toEqual(["b"]);
  });

  test("debounce: keep says which input the run gets", async () => {
    const got: unknown[] = [];
    const one = workflow(`one ${randomUUID()}`, async (_ctx, n: number) => void got.push(n));
    const all = workflow(`all ${randomUUID()}`, async (ctx, ns: number[]) => {
      got.push(ns);
      await ctx.sleep("pause", "1s");
      return ns;
    });
    const w = await database.world();
    const { settle } = await w.worker([one, all]);
    for (const n of [1, 2, 3]) {
      await w.pawl.start(one, n, { debounce: { ...quietly, keep: "first" } });
      const run = await w.pawl.start(all, n, { debounce: { ...quietly, keep: "all" } });
      expect((await run.get()).input).toEqual([1, 2, 3].slice(0, n));
      expect(run.merged).toBe(n > 1);
    }
    pass(w, 5_000);
    await settle();
    expect(got).toEqual(expect.arrayContaining([1, [1, 2, 3]]));
    pass(w, 1_000);
    await settle();
    const { runs } = await w.pawl.runs({ workflow: all });
    expect(runs).toMatchObject([{ status: "completed", input: [1, 2, 3], output: [1, 2, 3], gathered: { starts: 3 } }]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("debounce: other keys, heroes, priorities and workflows have runs of their own", async () => {
    const { index } = indexing();
    const other = indexing().index;
    const w = await database.world();
    const starts = [
      () => w.pawl.start(index, { id: "d1", text: "" }, { debounce: quietly }),
      () => w.pawl.start(index, { id: "d1", text: "" }, { debounce: { ...quietly, key: "d2" } }),
      () => w.pawl.start(index, { id: "d1", text: "" }, { debounce: { ...quietly, key: 1 } }),
      () => w.pawl.start(index, { id: "d1", text: "" }, { debounce: quietly, hero: { type: "Doc", id: "1" } }),
      () => w.pawl.start(index, { id: "d1", text: "" }, { debounce: quietly, priority: 5 }),
      () => w.pawl.start(other, { id: "d1", text: "" }, { debounce: quietly }),
    ];
    const first = await Promise.all(starts.map((begin) => begin()));
    const second = await Promise.all(starts.map((begin) => begin()));
    expect(new Set(first.map(({ id }) => id)).size).toBe(starts.length);
    expect(second.map(({ id, merged }) => ({ id, merged }))).toEqual(first.map(({ id }) => ({ id, merged: true })));
  });

  test("debounce: a trigger that knows only the name merges, and startMany computes the key of each run", async () => {
    const { indexed, index } = indexing();
    const w = await database.world();
    const { settle } = await w.worker([index]);
    const first = await w.pawl.start(index, { id: "d1", text: "a" }, { debounce: quietly });
    const byName = w.pawl.workflow<Doc>(index.name);
    const named = await byName.trigger({ id: "d1", text: "b" }, { debounce: quietly });
    expect(named).toMatchObject({ id: first.id, merged: true });
    const docs = ["d1", "d2", "d2"].map((id, n) => ({ id, text: `${id} ${n}` }));
    const debounce = { key: ({ input }: { input: Doc }) => input.id, quiet: "5s", max: "1m" } as const;
    const runs = await w.pawl.startMany(index, docs, { debounce });
    expect(runs.map(({ merged }) => merged)).toEqual([true, false, true]);
    const more = await byName.triggerMany(docs, { debounce });
    expect(more.map(({ id }) => id)).toEqual(runs.map(({ id }) => id));
    pass(w, 5_000);
    await settle();
    expect(indexed.toSorted()).toEqual(["d1 0", "d2 2"]);
  });

  test("debounce: a due run that waits for a slot needs that of its new input", async () => {
    const name = randomUUID();
    const perTenant = limit(name, { key: "input.tenant", concurrency: 1 });
    const { open, opened } = gate();
    const wf = workflow(name, { limits: [perTenant] }, async (ctx, input: { tenant: string; holds?: boolean }) => {
      if (input.holds) await ctx.step("hold", () => opened);
      return input.tenant;
    });
    const w = await database.world();
    keepWorking(await w.worker([wf]));
    const holder = await w.pawl.start(wf, { tenant: "a", holds: true });
    await until(async () => (await holder.status()) === "running");
    const debounce = { key: "k", quiet: "1m", max: "1m" } as const;
    const first = await w.pawl.start(wf, { tenant: "a" }, { debounce });
    pass(w, 60_000);
    // The worker hears of this start, and looks for what else is due.
    await w.pawl.start(wf, { tenant: "c" });
    await until(async () => (await first.explain()).because === "limited");
    const second = await w.pawl.start(wf, { tenant: "b" }, { debounce });
    expect([second.id, second.merged]).toEqual([first.id, true]);
    expect(await second.result({ timeout: "20s" })).toBe("b");
    open();
    await holder.result();
  });

  test("debounce: works in every style, and with limits", async () => {
    const texts: string[] = [];
    const perDoc = limit(`per doc ${randomUUID()}`, { key: "input.id", concurrency: 1 });
    const limited = workflow(`limited ${randomUUID()}`, { limits: [perDoc] }, async (_ctx, doc: Doc) => {
      texts.push(`function ${doc.text}`);
    });
    const node = step("write", async (ctx: StepContext<Doc>) => void texts.push(`graph ${ctx.input.text}`));
    const drawn = graph(`graph ${randomUUID()}`, [node]);
    class Indexing extends Workflow<null, Doc> {
      static {
        this.options({ name: `class ${randomUUID()}` });
        this.step("write", (w) => void texts.push(`class ${w.input.text}`));
      }
    }
    const w = await database.world();
    const { settle } = await w.worker([limited, drawn, Indexing]);
    for (const text of ["a", "b"]) {
      await w.pawl.start(limited, { id: "d1", text }, { debounce: quietly });
      await w.pawl.start(drawn, { id: "d1", text }, { debounce: quietly });
      await w.pawl.start(Indexing, { id: "d1", text }, { debounce: quietly });
      // The limited run may already have been sorted into the class of its first input.
      pass(w, 4_999);
      await settle();
    }
    expect(texts).toEqual([]);
    pass(w, 1);
    await settle();
    expect(texts.toSorted()).toEqual(["class b", "function b", "graph b"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("debounce: a run that an operator has paused or canceled gathers no more starts", async () => {
    const { indexed, index } = indexing();
    const w = await database.world();
    const { settle } = await w.worker([index]);
    const begin = (text: string) => w.pawl.start(index, { id: "d1", text }, { debounce: quietly });
    const paused = await begin("a");
    await paused.pause("not now");
    const canceled = await begin("b");
    expect(canceled).toMatchObject({ created: true, merged: false });
    await canceled.cancel("wrong");
    const last = await begin("c");
    expect(last).toMatchObject({ created: true, merged: false });
    expect((await canceled.get()).gathered).toMatchObject({ starts: 1, isOpen: false });
    pass(w, 5_000);
    await settle();
    expect(indexed).toEqual(["c"]);
    await paused.resume();
    await settle();
    expect(indexed).toEqual(["c", "a"]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("debounce: a worker that dies before its first commit leaves the run to the next, with the same input", async () => {
    const began = gate();
    const texts: string[] = [];
    const index = workflow(`index ${randomUUID()}`, async (ctx, docs: Doc[]) => {
      texts.push(docs.map(({ text }) => text).join());
      began.open();
      if (texts.length === 1) await ctx.step("hang", () => new Promise<void>(() => {}));
    });
    const w = await database.world();
    const debounce = { ...quietly, keep: "all" } as const;
    const run = await w.pawl.start(index, { id: "d1", text: "a" }, { debounce });
    await w.pawl.start(index, { id: "d1", text: "b" }, { debounce });
    pass(w, 5_000);
    const dying = await w.worker([index]);
    void dying.settle();
    await began.opened;
    await dying.kill();
    const { settle } = await w.worker([index]);
    const later = await w.pawl.start(index, { id: "d1", text: "c" }, { debounce });
    expect(later.merged).toBe(false);
    await settle();
    expect(texts).toEqual(["a,b", "a,b"]);
    expect(await run.status()).toBe("completed");
  });

  test("debounce: pruning deletes all that a run has gathered", async () => {
    const all = workflow(`all ${randomUUID()}`, async (_ctx, ns: number[]) => ns.length);
    const w = await database.world();
    const { settle } = await w.worker([all]);
    const run = await w.pawl.start(all, 1, { debounce: { ...quietly, keep: "all" } });
    await w.pawl.start(all, 2, { debounce: { ...quietly, keep: "all" } });
    const canceled = await w.pawl.start(all, 3, { debounce: { ...quietly, key: "d2", keep: "all" } });
    await canceled.cancel();
    pass(w, 5_000);
    await settle();
    expect((await w.store.gatherings.items(run.id)).length).toBe(2);
    pass(w, 86_400_000);
    await w.pawl.prune({ olderThan: "1h", workflow: all });
    expect(await w.store.gatherings.items(run.id)).toEqual([]);
    expect(await w.store.gatherings.items(canceled.id)).toEqual([]);
    expect((await w.pawl.verify()).differences).toEqual([]);
    const again = await w.pawl.start(all, 4, { debounce: { ...quietly, key: "d2", keep: "all" } });
    expect(again.created).toBe(true);
  });

  test("debounce: what cannot be merged is refused", async () => {
    const { index } = indexing();
    const w = await database.world();
    const doc = { id: "d1", text: "" };
    const refusal = async (options: object) => (await errorOf(w.pawl.start(index, doc, options))).message;
    expect(await refusal({ debounce: quietly, idempotencyKey: "k" })).toContain(
      "takes either `debounce` or `idempotencyKey`",
    );
    expect(await refusal({ debounce: quietly, tx: {} })).toContain("takes either `debounce` or `tx`");
    expect(await refusal({ debounce: quietly, delay: "1s" })).toContain("takes either `debounce` or `delay`");
    expect(await refusal({ debounce: { ...quietly, key: undefined } })).toContain("must be a text that is not empty");
    expect(await refusal({ debounce: { ...quietly, max: "1s" } })).toContain("less than its quiet");
    expect(await refusal({ debounce: { ...quietly, keep: "most" } })).toContain('"last", "first" or "all"');
    const many = w.pawl.startMany(index, [doc, doc], { debounce: quietly });
    expect((await errorOf(many)).message).toContain("must be a function of { input, hero, tags }");
    const busy = { debounce: quietly, hero: { type: "Doc", id: randomUUID() } };
    const running = await w.pawl.start(index, doc, { hero: busy.hero });
    expect(await errorOf(w.pawl.start(index, doc, busy))).toMatchObject({ code: "ALREADY_ACTIVE", runId: running.id });
  });

  test("debounce: many clients at once open one run, and each start is counted once", async () => {
    const got: number[][] = [];
    const all = workflow(
      `all ${randomUUID()}`,
      async (_ctx, ns: number[]) => void got.push(ns.toSorted((a, b) => a - b)),
    );
    const w = await database.world();
    const clients = [w, await database.world(), await database.world()];
    const { settle } = await w.worker([all]);
    const numbers = Array.from({ length: 30 }, (_, n) => n);
    const runs = await Promise.all(
      numbers.map((n) =>
        (kind === "memory" ? w : (clients[n % 3] as typeof w)).pawl.start(all, n, {
          debounce: { ...quietly, keep: "all" },
        }),
      ),
    );
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
    expect(runs.filter(({ created }) => created).length).toBe(1);
    expect((await runs[0]?.get())?.gathered?.starts).toBe(30);
    pass(w, 60_000);
    await settle();
    await until(() => got.length === 1);
    expect(got).toEqual([numbers]);
  });
}, everyStoreBriefly);
