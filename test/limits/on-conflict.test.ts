/** Starts with a key that another run has: `onConflict`. */
import { type RunHandle, Workflow, workflow } from "pawl";
import { type TestPawl, testPawl } from "pawl/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { everyStoreBriefly } from "../support/effort.js";
import { silent, start, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

/** Runs stay open until they get the signal "go". */
const open = workflow("open", async (ctx, name: string) => {
  await ctx.waitForSignal("go");
  return name;
});

interface User {
  readonly id: string;
}
class Onboarding extends Workflow<User, string, void> {
  static readonly heroType = "User";
  static readonly loadHero = (id: string) => ({ id });
  static {
    this.options({ name: "onboarding" });
    this.step("wait", async (w) => void (await w.waitForSignal("go")));
  }
}

async function pawlOn(kind: Parameters<typeof testDatabase>[0]): Promise<TestPawl> {
  const { url, drop } = await testDatabase(kind);
  onTestFinished(drop);
  const t = await testPawl({ workflows: [open, Onboarding], logger: silent, store: url });
  onTestFinished(() => t.close());
  return t;
}

const sound = async ({ pawl }: TestPawl) => expect((await pawl.verify()).differences).toEqual([]);
const statuses = (...runs: readonly RunHandle<any, any>[]) => Promise.all(runs.map((run) => run.status()));
const keyed = (onConflict?: "attach" | "fail" | "queue" | "cancelOther" | "replace") => ({
  idempotencyKey: "k",
  ...(onConflict === undefined ? {} : { onConflict }),
});

describe("onConflict:", () => {
  forEachStore((kind) => {
    test("attach returns the run that was started with the key, also after its end, and refuses another input", async () => {
      const t = await pawlOn(kind);
      const first = await t.pawl.start(open, "a", keyed());
      for (const policy of [undefined, "attach"] as const) {
        const again = await t.pawl.start(open, "a", keyed(policy));
        expect([again.id, again.created]).toEqual([first.id, false]);
        expect(await errorOf(t.pawl.start(open, "b", keyed(policy)))).toMatchObject({ code: "INVALID_INPUT" });
      }
      await first.signal("go", null);
      await t.settle();
      expect((await t.pawl.start(open, "a", keyed("attach"))).id).toBe(first.id);
    });

    test("fail throws an AlreadyActiveError with the id of the run", async () => {
      const t = await pawlOn(kind);
      const first = await t.pawl.start(open, "a", keyed("fail"));
      expect(await errorOf(t.pawl.start(open, "a", keyed("fail")))).toMatchObject({
        ...{ code: "ALREADY_ACTIVE", workflow: "open", hero: null, idempotencyKey: "k", runId: first.id },
      });
    });

    test("queue begins runs one after another, in order", async () => {
      const t = await pawlOn(kind);
      const first = await t.pawl.start(open, "a", keyed("queue"));
      await t.settle();
      const second = await t.pawl.start(open, "b", keyed("queue"));
      const third = await t.pawl.start(open, "c", keyed("queue"));
      expect([first.startsAfter, second.startsAfter, third.startsAfter]).toEqual([null, first.id, second.id]);
      expect([first.created, second.created, third.created]).toEqual([true, true, true]);
      await t.advance("1 day");
      expect(await statuses(first, second, third)).toEqual(["waiting", "pending", "pending"]);
      expect(await second.explain()).toMatchObject({
        because: "queued",
        text: `It has not started: it begins when run ${first.id} has ended, which has the same idempotency key or hero.`,
      });
      expect((await second.get()).startsAfter).toBe(first.id);
      expect((await first.history()).map(({ type, data }) => [type, data])).toContainEqual([
        "run.start_queued",
        { run: second.id },
      ]);
      await sound(t);
      await first.signal("go", null);
      await t.settle();
      expect(await statuses(first, second, third)).toEqual(["completed", "waiting", "pending"]);
      await second.signal("go", null);
      await t.settle();
      await third.signal("go", null);
      await t.settle();
      expect(await Promise.all([first, second, third].map((run) => run.result()))).toEqual(["a", "b", "c"]);
      const fourth = await t.pawl.start(open, "d", keyed("queue"));
      expect([fourth.created, fourth.startsAfter]).toEqual([true, null]);
      expect((await t.pawl.find(open, { idempotencyKey: "k" }))?.id).toBe(fourth.id);
      expect((await third.get()).idempotencyKey).toBeNull();
      await sound(t);
    });

    test("queue waits for a run that has not begun, too, and a failed or canceled run lets the next begin", async () => {
      const t = await pawlOn(kind);
      const first = await t.pawl.start(open, "a", { ...keyed(), delay: "1h" });
      const second = await t.pawl.start(open, "b", keyed("queue"));
      await t.settle();
      expect(await statuses(first, second)).toEqual(["pending", "pending"]);
      await first.cancel("not needed");
      await t.settle();
      expect(await statuses(first, second)).toEqual(["canceled", "waiting"]);
      await sound(t);
    });

    test("a queued run that is canceled lets those behind it wait for the run before it", async () => {
      const t = await pawlOn(kind);
      const first = await t.pawl.start(open, "a", keyed());
      await t.settle();
      const [second, third] = [
        await t.pawl.start(open, "b", keyed("queue")),
        await t.pawl.start(open, "c", keyed("queue")),
      ];
      await second.cancel("changed my mind");
      await t.settle();
      expect(await statuses(first, second, third)).toEqual(["waiting", "canceled", "pending"]);
      await sound(t);
      await third.cancel("that, too");
      expect((await t.pawl.start(open, "a", keyed())).id).toBe(first.id);
      const fourth = await t.pawl.start(open, "d", keyed("queue"));
      expect(fourth.startsAfter).toBe(first.id);
      await t.settle();
      expect(await fourth.status()).toBe("pending");
      await first.signal("go", null);
      await t.settle();
      expect(await statuses(first, fourth)).toEqual(["completed", "waiting"]);
      await sound(t);
    });

    test("cancelOther cancels the open run, and the new one begins after its end", async () => {
      const t = await pawlOn(kind);
      const first = await t.pawl.start(open, "a", keyed());
      await t.settle();
      const second = await t.pawl.start(open, "b", keyed("cancelOther"));
      await t.settle();
      expect(await statuses(first, second)).toEqual(["canceled", "waiting"]);
      expect((await first.get()).error?.message).toMatch(/^Run .* was started in its place$/);
      expect((await t.pawl.find(open, { idempotencyKey: "k" }))?.id).toBe(second.id);
      const third = await t.pawl.start(open, "c", keyed("cancelOther"));
      await t.settle();
      expect(await statuses(second, third)).toEqual(["canceled", "waiting"]);
      await sound(t);
    });

    test("cancelOther waits for a run that a worker must cancel, because it has a step to compensate", async () => {
      const undone: string[] = [];
      const booking = workflow("booking", async (ctx, name: string) => {
        await ctx.step("book", () => name, { compensate: () => void undone.push(name) });
        await ctx.waitForSignal("go");
      });
      const { url, drop } = await testDatabase(kind);
      onTestFinished(drop);
      const w = await world(kind, url);
      const { kill } = await w.worker([booking]);
      const first = await w.pawl.start(booking, "a", keyed());
      await w.settleAll();
      await kill();
      const second = await w.pawl.start(booking, "b", keyed("cancelOther"));
      expect([second.created, second.startsAfter]).toEqual([true, first.id]);
      const third = await w.pawl.start(booking, "c", keyed("queue"));
      await w.worker([booking]);
      await w.settleAll();
      expect(undone).toEqual(["a"]);
      expect(await statuses(first, second, third)).toEqual(["canceled", "waiting", "pending"]);
    });

    test("replace does not claim to have replaced a run that collects the inputs of debounced starts", async () => {
      const t = await pawlOn(kind);
      const hero = { type: "User", id: "collector" };
      const collect = workflow("collect", async (_ctx, changes: string[]) => changes);
      const debounce = { key: "k", quiet: "1m", keep: "all" } as const;
      const collecting = await t.pawl.start(collect, "a", { hero, debounce });
      const late = await t.pawl.start(collect, ["b"], { hero, onConflict: "replace" });
      expect([late.id, late.created, late.replaced]).toEqual([collecting.id, false, false]);
      expect((await collecting.get()).gathered?.starts).toBe(1);
    });

    test("replace gives a run that has not begun another input, priority, tags and start time", async () => {
      const t = await pawlOn(kind);
      const first = await t.pawl.start(open, "a", { ...keyed(), delay: "1h", tags: ["old"], startBy: "5h" });
      const options = { ...keyed("replace"), delay: "2h", priority: 7, tags: ["new"], by: "ada", startBy: "1h" };
      const again = await t.pawl.start(open, "b", options);
      expect([again.id, again.created, again.replaced]).toEqual([first.id, false, true]);
      expect(await first.get()).toMatchObject({ input: "b", priority: 7, tags: ["new"], startedBy: { by: "ada" } });
      expect((await first.history()).map(({ type }) => type)).toContain("run.start_replaced");
      expect((await first.explain()).expiresAt).toEqual(new Date(t.clock.read() + 3 * 3_600_000));
      await sound(t);
      await t.advance("90m");
      expect(await first.status()).toBe("pending");
      await t.advance("30m");
      expect(await first.status()).toBe("waiting");
      const late = await t.pawl.start(open, "c", keyed("replace"));
      expect([late.id, late.created, late.replaced]).toEqual([first.id, false, false]);
      expect((await first.get()).input).toBe("b");
      await first.signal("go", null);
      await t.settle();
      const fresh = await t.pawl.start(open, "d", keyed("replace"));
      expect([fresh.created, fresh.replaced]).toEqual([true, false]);
      await t.settle();
      expect(await fresh.status()).toBe("waiting");
      await sound(t);
    });

    test("replace of a run that waits in the queue keeps its place", async () => {
      const t = await pawlOn(kind);
      const first = await t.pawl.start(open, "a", keyed());
      await t.settle();
      const second = await t.pawl.start(open, "b", keyed("queue"));
      const again = await t.pawl.start(open, "c", keyed("replace"));
      expect([again.id, again.replaced, again.startsAfter]).toEqual([second.id, true, first.id]);
      await t.advance("1 day");
      expect(await second.status()).toBe("pending");
      await first.signal("go", null);
      await t.settle();
      await second.signal("go", null);
      await t.settle();
      expect(await second.result()).toBe("c");
      await sound(t);
    });

    test("a hero has one active run: the others wait, cancel it or are refused", async () => {
      const t = await pawlOn(kind);
      const hero = { type: "User", id: "42" } as const;
      const first = await t.pawl.start(Onboarding, "a", { hero });
      await t.settle();
      expect(await errorOf(t.pawl.start(Onboarding, "b", { hero, onConflict: "fail" }))).toMatchObject({
        ...{ code: "ALREADY_ACTIVE", runId: first.id, hero },
      });
      expect((await t.pawl.start(Onboarding, "b", { hero, onConflict: "attach" })).id).toBe(first.id);
      const second = await t.pawl.start(Onboarding, "b", { hero, onConflict: "queue" });
      expect(second.startsAfter).toBe(first.id);
      expect(await errorOf(t.pawl.start(Onboarding, "c", { hero }))).toMatchObject({ runId: second.id });
      await sound(t);
      await second.cancel("no");
      expect(await errorOf(t.pawl.start(Onboarding, "c", { hero }))).toMatchObject({ runId: first.id });
      const third = await t.pawl.start(Onboarding, "c", { hero, onConflict: "cancelOther" });
      await t.settle();
      expect(await statuses(first, second, third)).toEqual(["canceled", "canceled", "waiting"]);
      await third.signal("go", null);
      await t.settle();
      expect((await t.pawl.start(Onboarding, "d", { hero })).created).toBe(true);
      await sound(t);
    });

    test("a queued run with startBy expires while it waits, and those behind it go on waiting", async () => {
      const t = await pawlOn(kind);
      const first = await t.pawl.start(open, "a", keyed());
      await t.settle();
      const second = await t.pawl.start(open, "b", { ...keyed("queue"), startBy: "10m" });
      const third = await t.pawl.start(open, "c", keyed("queue"));
      await t.advance("10m");
      expect(await statuses(first, second, third)).toEqual(["waiting", "canceled", "pending"]);
      expect(await errorOf(second.result())).toMatchObject({ code: "EXPIRED" });
      await first.signal("go", null);
      await t.settle();
      expect(await third.status()).toBe("waiting");
      await sound(t);
    });
  }, everyStoreBriefly);

  test("a start by name, and many callers at once, behave like one after another", async () => {
    const t = await start(open);
    await t.pawl.start(open, "first", keyed());
    await t.settle();
    const runs = await Promise.all(
      Array.from({ length: 50 }, (_, n) => t.pawl.workflow<string>("open").trigger(`${n}`, keyed("queue"))),
    );
    expect(new Set(runs.map(({ id }) => id)).size).toBe(50);
    expect(new Set(runs.map(({ startsAfter }) => startsAfter)).size).toBe(50);
    for (let ended = 0; ended <= 50; ended += 1) {
      await t.settle();
      const { runs: waiting } = await t.pawl.runs({ workflow: "open", status: "waiting" });
      expect(waiting).toHaveLength(1);
      await t.pawl.run(waiting[0]?.id as string).signal("go", null);
    }
    await t.settle();
    expect(await statuses(...runs)).toEqual(runs.map(() => "completed"));
    await sound(t);
  });

  test("options that do not go together are refused with a sentence", async () => {
    const t = await start(open);
    const refusals: [object, string][] = [
      [{ onConflict: "queue" }, "needs an `idempotencyKey` or a `hero`"],
      [
        { ...keyed(), onConflict: "wait" },
        'onConflict is "attach", "fail", "queue", "cancelOther" or "replace", not "wait"',
      ],
      [{ ...keyed("queue"), delay: "1h" }, "takes neither `delay` nor `startAt`"],
      [{ ...keyed("replace"), tx: {} }, "cannot be used with `tx`"],
    ];
    for (const [options, sentence] of refusals)
      expect((await errorOf(t.pawl.start(open, "a", options as never))).message).toContain(sentence);
    expect((await errorOf(t.pawl.startMany(open, ["a"], keyed("queue") as never))).message).toContain("idempotencyKey");
  });
});
