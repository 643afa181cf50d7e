/** A body that is replayed repeats its recorded calls, including those whose results must be read from the store. */
import { Pawl, Workflow } from "pawl";
import { VirtualClock } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";
import { MemoryStore } from "../../src/store/memory/index.js";

const delay = () => new Promise((resolve) => setTimeout(resolve, 10));
class Child extends Workflow<unknown, number, number> {
  static {
    this.step("k", (w) => w.finish(w.input * 2));
  }
}
class Parent extends Workflow<{ id: string }> {
  static loadHero = async (id: string) => {
    await delay();
    return { id };
  };
  static {
    this.step("s", async (w) => {
      await w.map(Child, [1, 2]);
      await w.sleep("nap", "1h");
    });
  }
}

test("a body that is replayed finds its map again, even when the store is slow", async () => {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock: clock.read });
  // Like a database, this store does not read the results of the children within one turn of the event loop.
  const slow = new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (name === "runsById")
        return async (...args: unknown[]) => {
          await delay();
          return Reflect.apply(value, target, args);
        };
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  await slow.migrate();
  const pawl = new Pawl(slow, { debug() {}, info() {}, warn() {}, error() {} });
  onTestFinished(() => pawl.close());
  const worker = await pawl.worker({ workflows: [Parent, Child], poll: Number.POSITIVE_INFINITY }).start();
  const run = await pawl.start(Parent, undefined, { hero: { type: "User", id: "1" } });
  for (let due = await worker.runUntilIdle(); due !== null; due = await worker.runUntilIdle()) clock.moveTo(due);
  expect(await run.get()).toMatchObject({ status: "completed" });
});
