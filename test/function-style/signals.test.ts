import { signal, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { outputOf, start, world } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

const day = 86_400_000;

describe("ctx.waitForSignal", () => {
  test("returns the payload of the signal, whatever kind of value it is", async () => {
    const wf = workflow("payload", (ctx) => ctx.waitForSignal("go"));
    const t = await start(wf);
    const payloads = [
      { by: "finance", at: new Date(7) },
      0,
      "",
      false,
      null,
      undefined,
      [1n],
      new Map([["a", new Set([1])]]),
    ];
    for (const payload of payloads) {
      const run = await t.pawl.start(wf);
      await t.settle();
      await run.signal("go", payload);
      await t.settle();
      expect(await run.result()).toEqual(payload);
    }
  });

  test("receives a signal that was sent by its handle, with its key", async () => {
    const shipped = signal<{ parcel: string }>("shipped");
    const wf = workflow("typed", async (ctx) => [
      await ctx.waitForSignal(shipped),
      await ctx.waitForSignal(shipped, { timeout: "1 day" }),
    ]);
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await run.signal(shipped, { parcel: "p1" }, { key: "webhook-9" });
    await t.pawl.run(run.id).signal(shipped, { parcel: "p1" }, { key: "webhook-9" });
    await t.speedrun(run);
    expect(await run.result()).toEqual([{ parcel: "p1" }, null]);
    for (const wrong of [{}, { signal: 5 }, null, undefined, 5])
      expect(await errorOf(run.signal(wrong as never))).toMatchObject({ code: "INVALID_INPUT" });
  });

  test("says what the run waits for", async () => {
    const wf = workflow("named", (ctx) => ctx.waitForSignal("approved"));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect(await run.get()).toMatchObject({ status: "waiting", waitingFor: [{ kind: "signal", names: ["approved"] }] });
    await expect(t.speedrun(run)).rejects.toThrow('"approved"');
  });

  test("receives a signal that arrived before the wait, even before the run started", async () => {
    const wf = workflow("early", async (ctx) => {
      await ctx.sleep("nap", "1 day");
      return ctx.waitForSignal("go");
    });
    const w = await world();
    const run = await w.pawl.start(wf);
    await run.signal("go", "before a worker");
    const worker = await w.worker([wf]);
    for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
    expect(await run.result()).toBe("before a worker");
  });

  test("receives signals of one name in the order they were sent, each once", async () => {
    const wf = workflow("ordered", async (ctx) => {
      const received: unknown[] = [];
      for (let index = 0; index < 5; index += 1) received.push(await ctx.waitForSignal("n"));
      return received;
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await run.signal("n", 1);
    await run.signal("n", 2);
    await t.settle();
    await run.signal("n", 3);
    await run.signal("n", 4);
    await t.settle();
    await run.signal("n", 5);
    await t.settle();
    expect(await run.result()).toEqual([1, 2, 3, 4, 5]);
  });

  test("does not take a signal of another name, or of a name that differs only in case", async () => {
    const wf = workflow("picky", (ctx) => ctx.waitForSignal("Go"));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await run.signal("go", 1);
    await run.signal("stop", 2);
    await t.settle();
    expect(await run.status()).toBe("waiting");
    await run.signal("Go", 3);
    await t.settle();
    expect(await run.result()).toBe(3);
  });

  test("accepts a key once: a webhook that is delivered again changes nothing", async () => {
    const wf = workflow("deduplicated", async (ctx) => [
      await ctx.waitForSignal("paid"),
      await ctx.waitForSignal("paid", { timeout: "1 day" }),
    ]);
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await run.signal("paid", "first", { key: "webhook-9" });
    await run.signal("paid", "again", { key: "webhook-9" });
    await t.settle();
    await run.signal("paid", "and again", { key: "webhook-9" });
    await t.speedrun(run);
    expect(await run.result()).toEqual(["first", null]);
  });

  test("deduplicates keys that are sent at the same time, and keeps those of different runs separate", async () => {
    const wf = workflow("at-once", async (ctx) => {
      const received: unknown[] = [];
      for (;;) {
        const next = await ctx.waitForSignal("n", { timeout: "1 day" });
        if (next === null) return received;
        received.push(next);
      }
    });
    const t = await start(wf);
    const [a, b] = await t.pawl.startMany(wf, [undefined, undefined]);
    if (a === undefined || b === undefined) throw new Error("not started");
    await Promise.all(
      [1, 1, 1, 2, 2].flatMap((n) => [a.signal("n", n, { key: `k${n}` }), b.signal("n", n, { key: `k${n}` })]),
    );
    await t.speedrun(a);
    await t.speedrun(b);
    expect((await a.result()).sort()).toEqual([1, 2]);
    expect((await b.result()).sort()).toEqual([1, 2]);
  });

  test("returns null after its timeout", async () => {
    const wf = workflow("timed", async (ctx) => [
      await ctx.waitForSignal("never", { timeout: "7 days" }),
      ctx.now().getTime(),
    ]);
    const t = await start(wf);
    const begin = t.clock.read();
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(await run.result()).toEqual([null, begin + 7 * day]);
  });

  test("a signal that arrived before the deadline wins over the timeout, even if no worker was running", async () => {
    const wf = workflow("just-in-time", (ctx) => ctx.waitForSignal("go", { timeout: "1 day" }));
    const w = await world();
    const first = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    const due = (await first.settle()) as number;
    await first.kill();
    w.clock.moveTo(due - 1);
    await run.signal("go", "in time");
    w.clock.moveTo(due + day);
    await (await w.worker([wf])).settle();
    expect(await run.result()).toBe("in time");
  });

  test("a signal that arrived after the deadline loses against the timeout, even if no worker was running, and stays for the next wait", async () => {
    const wf = workflow("too-late", async (ctx) => [
      await ctx.waitForSignal("go", { timeout: "1 day" }),
      await ctx.waitForSignal("go"),
    ]);
    const w = await world();
    const first = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    const due = (await first.settle()) as number;
    await first.kill();
    w.clock.moveTo(due + 1);
    await run.signal("go", "late");
    await (await w.worker([wf])).settle();
    expect(await run.result()).toEqual([null, "late"]);
  });

  test("an inbox that was filled while a step ran is processed in order, with the deadlines in between", async () => {
    const started = gate();
    const finish = gate();
    const wf = workflow("busy", async (ctx) => {
      const waiting = ctx.waitForSignal("go", { timeout: "1 hour" });
      await ctx.step("long", async () => {
        started.open();
        await finish.opened;
      });
      return [await waiting, await ctx.waitForSignal("go", { timeout: "1 hour" })];
    });
    const w = await world();
    const worker = await w.worker([wf]);
    const run = await w.pawl.start(wf);
    await started.opened;
    await run.signal("go", 1);
    finish.open();
    for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
    expect(await run.result()).toEqual([1, null]);
  });

  test("two waits for the same name get one signal each, the older wait first", async () => {
    const wf = workflow("two-waits", async (ctx) => Promise.all([ctx.waitForSignal("n"), ctx.waitForSignal("n")]));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    await run.signal("n", "first");
    await t.settle();
    expect(await run.status()).toBe("waiting");
    await run.signal("n", "second");
    await t.settle();
    expect(await run.result()).toEqual(["first", "second"]);
  });

  test("types the payload when it is given a handle", async () => {
    const approved = signal<{ by: string }>("approved");
    const wf = workflow("typed", async (ctx) => (await ctx.waitForSignal(approved))?.by.toUpperCase());
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await run.signal("approved", { by: "finance" });
    await t.speedrun(run);
    expect(await run.result()).toBe("FINANCE");
  });

  test("a signal to a run that has ended is refused", async () => {
    const wf = workflow("over", async () => 1);
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.speedrun(run);
    expect(await errorOf(run.signal("late"))).toMatchObject({ code: "INVALID_STATE", status: "completed" });
  });
});

describe("ctx.waitForAny", () => {
  test("returns the first of several signals with its name; the others stay for later", async () => {
    const wf = workflow("any", async (ctx) => [
      await ctx.waitForAny(["paid", "refused"]),
      await ctx.waitForAny(["paid", "refused"], { timeout: "1 day" }),
      await ctx.waitForAny(["paid", "refused"], { timeout: "1 day" }),
    ]);
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await run.signal("refused", 1);
    await run.signal("paid", 2);
    await t.speedrun(run);
    expect(await run.result()).toEqual([{ name: "refused", payload: 1 }, { name: "paid", payload: 2 }, null]);
  });

  test("without names is refused", async () => {
    const wf = workflow("none", async (ctx) => ctx.waitForAny([]));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    expect((await errorOf(run.result({ timeout: "100s" }))).cause).toMatchObject({ code: "INVALID_INPUT" });
  });
});

describe("ctx.waitForAll", () => {
  test("waits for one of each and returns them by name", async () => {
    const wf = workflow("all", (ctx) => ctx.waitForAll(["legal", signal<number>("finance")]));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    await run.signal("finance", 2);
    await run.signal("finance", 3);
    await t.settle();
    expect(await run.status()).toBe("waiting");
    await run.signal("legal", "fine");
    await t.settle();
    expect(await run.result()).toEqual({ legal: "fine", finance: 2 });
  });

  test("returns null after its timeout, and the signals that had arrived by then stay available", async () => {
    const wf = workflow("not-all", async (ctx) => [
      await ctx.waitForAll(["legal", "finance"], { timeout: "1 day" }),
      await ctx.waitForSignal("legal", { timeout: "1 day" }),
    ]);
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await run.signal("legal", "fine");
    await t.speedrun(run);
    expect(await run.result()).toEqual([null, "fine"]);
  });

  test("treats a signal called __proto__ like any other", async () => {
    const wf = workflow("proto", async (ctx) => {
      const all = (await ctx.waitForAll(["__proto__", "b"])) as Record<string, unknown>;
      return [Object.keys(all).sort(), Object.getPrototypeOf(all) === Object.prototype];
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await run.signal("__proto__", { polluted: true });
    await run.signal("b", 1);
    await t.speedrun(run);
    expect(await run.result()).toEqual([["__proto__", "b"], true]);
  });
});

describe("the name of a wait", () => {
  test("may be as long as several signal names of the maximum length", async () => {
    const names = Array.from({ length: 8 }, (_, index) => `${index}`.padEnd(200, "x"));
    const wf = workflow("long-names", (ctx) => ctx.waitForAny(names));
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    await run.signal(names[7] as string, 1);
    await t.settle();
    expect(await run.result()).toEqual({ name: names[7], payload: 1 });
  });

  test("stays unambiguous with signal names that contain its separators", async () => {
    const wf = workflow("separators", async (ctx) => {
      const [joined, several] = await Promise.all([ctx.waitForSignal("a|b"), ctx.waitForAny(["a", "b"])]);
      await ctx.sleep("replay", "1h");
      return [joined, several];
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    await run.signal("b", 2);
    await run.signal("a|b", 1);
    await t.speedrun(run);
    expect(await run.result()).toEqual([1, { name: "b", payload: 2 }]);
  });

  test("may be used by a step too", async () => {
    const wf = workflow("same-name", async (ctx) => {
      const step = await ctx.step("signal:go", () => "step");
      const wait = await ctx.waitForSignal("go", { timeout: "1h" });
      return [step, wait];
    });
    expect(await outputOf(wf, undefined)).toEqual(["step", null]);
  });
});
