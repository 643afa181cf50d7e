/** Concurrent commands of several clients: each is applied once, and no run is lost between them. */
import { Pawl, type RunHandle, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { seededRandom } from "../../src/core/naming/ids.js";
import type { Store } from "../../src/store/contract/store.js";
import { forEachStore, testDatabase } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { silent, type World, world } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";
import { forEachInterleaving, Interleaving } from "./interleaving.js";

const greeting = workflow("greeting", async (ctx) => ctx.waitForSignal("hello"));
const one = workflow("one", (ctx, n: number) => ctx.step("work", () => n));
const parent = workflow("parent", (ctx) => ctx.map(one, [1, 2, 3], { concurrency: 1 }));
const all = [greeting, one, parent];

describe("interleavings of the store calls of two clients", () => {
  const trials: readonly [
    string,
    (run: RunHandle<any, any>) => Promise<unknown>,
    (run: RunHandle<any, any>) => Promise<unknown>,
  ][] = [
    ["pause and signal", (run) => run.pause(), (run) => run.signal("hello", "signalled")],
    ["pause and pause", (run) => run.pause(), (run) => run.pause()],
    ["signal and signal", (run) => run.signal("hello", "signalled"), (run) => run.signal("hello", "signalled")],
  ];

  for (const [name, first, second] of trials)
    test(`a run that has not started survives ${name} in any interleaving, and starts when it is resumed`, async () => {
      await forEachInterleaving(sized(50, 150), async (interleaving) => {
        const w = await world();
        const { id } = await w.pawl.start(greeting);
        const clients = [interleaving.client(w.store), interleaving.client(w.store)] as const;
        await interleaving.run([() => first(clients[0].run(id)), () => second(clients[1].run(id))]);
        await finish(w, id);
        expect(await w.pawl.run(id).result()).toBe("signalled");
        expect((await w.pawl.verify()).differences).toEqual([]);
      });
    });

  test("a delayed run keeps its start time in any interleaving of a pause, a resume and a signal", async () => {
    await forEachInterleaving(sized(35, 100), async (interleaving) => {
      const w = await world();
      const begin = w.clock.read();
      const { id } = await w.pawl.start(greeting, undefined, { delay: "1h" });
      const clients = [interleaving.client(w.store), interleaving.client(w.store)] as const;
      const pauseAndResume = async () => {
        await clients[0].run(id).pause();
        await clients[0].run(id).resume();
      };
      await interleaving.run([pauseAndResume, () => clients[1].run(id).signal("hello", "signalled")]);
      const worker = await w.worker(all);
      expect(await worker.settle()).toBe(begin + 3_600_000);
      expect(await w.pawl.run(id).status()).toBe("pending");
      w.clock.moveTo(begin + 3_600_000);
      await worker.settle();
      expect(await w.pawl.run(id).result()).toBe("signalled");
    });
  });

  test("a held child runs after its release in any interleaving of the release and a signal", async () => {
    await forEachInterleaving(sized(25, 60), async (interleaving) => {
      const w = await world();
      const { id } = await w.pawl.start(parent);
      const first = await w.worker(all, { concurrency: 1 });
      // The parent has created its children: one may run, two are held.
      await until(async () => (await w.pawl.runs({ workflow: one })).runs.length === 3);
      const children = (await w.pawl.runs({ workflow: one })).runs;
      const client = interleaving.client(w.store);
      const signals = children.map(
        (child) => () =>
          client
            .run(child.id)
            .signal("unasked")
            .catch(() => {}),
      );
      await interleaving.run([...signals, () => first.settle()]);
      await first.settle();
      expect(await w.pawl.run(id).result()).toEqual([1, 2, 3]);
    });
  });
});

test("a delayed run that is paused does not start when its time comes, and starts when it is resumed", async () => {
  const w = await world();
  const run = await w.pawl.start(greeting, undefined, { delay: "1h" });
  await run.pause("not yet");
  const worker = await w.worker(all);
  w.clock.moveTo(w.clock.read() + 7_200_000);
  await worker.settle();
  expect(await run.get()).toMatchObject({ status: "paused", startedAt: null, pauseReason: "not yet" });
  expect((await run.explain()).because).toBe("paused");
  expect(await run.history()).toMatchObject([{ type: "run.paused" }, { type: "run.became_due" }]);
  await run.pause().then(
    () => expect.unreachable(),
    (error) => expect(error).toMatchObject({ code: "INVALID_STATE" }),
  );
  await run.resume();
  await run.signal("hello", "at last");
  await worker.settle();
  expect(await run.result()).toBe("at last");
});

forEachStore((kind) => {
  test("none of 300 runs is lost when two clients pause and signal them concurrently and then resume them", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const other = new Pawl(w.store, silent);
    const runs = await w.pawl.startMany(greeting, Array.from({ length: 300 }));
    await Promise.all(
      runs.flatMap(({ id }) => [w.pawl.run(id).pause(), other.run(id).signal("hello", id, { key: "once" })]),
    );
    await Promise.all(runs.map((run) => run.resume()));
    const worker = await w.worker(all, { concurrency: 300 });
    await worker.settle();
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(runs.map(({ id }) => id));
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  for (const state of ["parked", "not started"] as const)
    test(`of 1,000 concurrent signals to one run that is ${state}, none is refused or lost, and each client's stay in order`, async () => {
      const database = await testDatabase(kind);
      onTestFinished(() => database.drop());
      const w = await world(kind, database.url);
      const collect = workflow("collect", (ctx) => ctx.waitForSignal("never"));
      const run = await w.pawl.start(collect);
      if (state === "parked") {
        const first = await w.worker([collect]);
        await first.settle();
        await first.worker.stop();
      }
      const clients = [w.pawl, new Pawl(w.store, silent), new Pawl(w.store, silent), new Pawl(w.store, silent)];
      const names = Array.from({ length: 1_000 }, (_, n) => `${n % 4}-${Math.floor(n / 4)}`);
      await Promise.all(
        names.map((name, n) => (clients[n % 4] as Pawl).run(run.id).signal("item", name, { key: name })),
      );
      const worker = await w.worker([collect]);
      await worker.settle();
      const log = await run.history({ limit: 1_000 });
      const rest = await run.history({ after: 1_000 });
      const got = [...log, ...rest].flatMap(({ type, data }) =>
        type === "signal.received" ? [data.payload as string] : [],
      );
      expect(got).toHaveLength(1_000);
      expect(new Set(got)).toEqual(new Set(names));
      for (const client of ["0", "1", "2", "3"]) {
        const own = got.filter((name) => name.startsWith(`${client}-`));
        expect(own).toEqual(names.filter((name) => name.startsWith(`${client}-`)));
      }
    });
});

/** Resumes the run if it is paused, sends the signal if it is missing, and executes the run to its end. */
async function finish(w: World, id: string): Promise<void> {
  const run = w.pawl.run(id);
  if ((await run.status()) === "paused") await run.resume();
  await run.signal("hello", "signalled").catch(() => {});
  const worker = await w.worker(all);
  await worker.settle();
}

test("the seeds of this file produce different schedules", async () => {
  const seen = new Set<string>();
  for (let seed = 0; seed < 20; seed += 1) {
    const interleaving = new Interleaving(seededRandom(`${seed}`));
    const calls: string[] = [];
    const store = { now: async () => 1 } as unknown as Store;
    const [a, b] = [interleaving.gated(store), interleaving.gated(store)];
    const client = (name: string, gated: Store) => async () => {
      for (let n = 0; n < 3; n += 1) {
        await gated.now();
        calls.push(name);
      }
    };
    await interleaving.run([client("a", a), client("b", b)]);
    seen.add(calls.join(""));
  }
  expect(seen.size).toBeGreaterThan(5);
});
