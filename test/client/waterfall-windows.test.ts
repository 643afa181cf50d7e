/** The waterfall of long runs: windows of the log, rows that stand for many, and the limits of an answer. */
import { workflow } from "pawl";
import { expect, test } from "vitest";
import { maxWindow, readWaterfall, type WaterfallRequest } from "../../src/client/inspect/waterfall/read-waterfall.js";
import type { WaterfallRow } from "../../src/client/inspect/waterfall/rows.js";
import { namePattern } from "../../src/client/inspect/waterfall/similar-names.js";
import { waterfallOf } from "../../src/client/inspect/waterfall/waterfall.js";
import { newEvent } from "../../src/core/run/event.js";
import type { Store, StoredEvent } from "../../src/store/contract/store.js";
import { startInMemory } from "../support/virtual-worlds.js";
import { countSpans, read, rowOf } from "./waterfall-lines.js";

const day = 86_400_000;

/** The store with a log of this many completed steps before the last event in place of the run's own log. */
function withLongLog(store: Store, count: number, limits: number[]): Store {
  const eventAt = (seq: number): StoredEvent => {
    const node = seq % 3 === 0 ? `row_${seq}` : `k${"abcdefgh"[seq % 8]}#${seq}`;
    const common = { seq, at: 1_700_000_000_000 + seq * 40, attempt: null, outcome: null };
    if (seq === count)
      return { ...common, ...newEvent("wait.started", { node: "signal:go" }, { names: ["go"], mode: "any" }) };
    return { ...common, ...newEvent("step.completed", { node, attempt: 1, outcome: "success" }, { ms: 12 }) };
  };
  const log: Store["log"] = async (_id, { after, limit }) => {
    limits.push(limit);
    return Array.from({ length: Math.max(0, Math.min(limit, count - after)) }, (_, index) =>
      eventAt(after + index + 1),
    );
  };
  const questions = { ...store.maintenance.questions, lastEventSeq: async () => count };
  const maintenance = { ...store.maintenance, questions };
  const replaced: Partial<Store> = { log, maintenance };
  return new Proxy(store, {
    get: (target, name) => {
      if (Object.hasOwn(replaced, name)) return replaced[name as keyof Store];
      const value = Reflect.get(target, name) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("more than eight steps with similar names are one row, and a failed one is not hidden in it", async () => {
  const migrate = workflow("migrate", async (ctx) => {
    for (let n = 0; n < 8; n += 1) await ctx.step("few", () => {});
    for (let n = 0; n < 30; n += 1)
      await ctx
        .step(
          `mutation_${n}`,
          () => {
            if (n === 7) throw new Error("odd");
          },
          { retry: { attempts: 1 } },
        )
        .catch(() => {});
  });
  const t = await startInMemory(migrate);
  const run = await t.pawl.start(migrate);
  await t.speedrun(run);
  const waterfall = await read(t, run);
  expect(waterfall.rows.map(({ name }) => name)).toEqual([
    "migrate",
    "few",
    ...Array.from({ length: 7 }, (_, n) => `few#${n + 2}`),
    "mutation_*",
  ]);
  const { group, state, spans } = rowOf(waterfall, "mutation_*");
  expect({ group, state }).toMatchObject({ group: { count: 30, ended: 30, failed: 1 }, state: "failed" });
  expect(spans.some((span) => span.state === "failed")).toBe(true);
  expect((await read(t, run, { expand: group?.id })).rows.filter((row) => row.state === "failed")).toMatchObject([
    { name: "mutation_7", node: "mutation_7" },
  ]);
  expect((await read(t, run, { expand: "no such group" })).rows).toEqual([]);
});

test("a map with 1,000 children is one row; its children are listed in parts, with their ids", async () => {
  const part = workflow("part", async (_ctx, n: number) => {
    if (n === 500) throw new Error("no");
  });
  const all = workflow("all", async (ctx) => {
    const items = Array.from({ length: 1_000 }, (_, n) => n);
    await ctx.map(part, items, { concurrency: 50, tolerate: 5 });
  });
  const t = await startInMemory(all, part);
  const run = await t.pawl.start(all);
  await t.speedrun(run, { maxExecutions: 100_000 });
  const waterfall = await read(t, run);
  expect(waterfall.rows).toHaveLength(2);
  expect(rowOf(waterfall, "part")).toMatchObject({ kind: "map", group: { count: 1_000, ended: 1_000, failed: 1 } });
  const parts = await read(t, run, { expand: rowOf(waterfall, "part").group?.id });
  expect(parts.rows).toHaveLength(100);
  const broken = parts.rows.filter(({ state }) => state === "failed");
  expect(broken).toMatchObject([{ name: "[500] … [509]", group: { count: 10, failed: 1 } }]);
  const children = await read(t, run, { expand: broken[0]?.group?.id });
  expect(children.rows.map(({ name, state }) => `${name} ${state}`).slice(0, 2)).toEqual([
    "[500] failed",
    "[501] completed",
  ]);
  const [child] = children.rows as [WaterfallRow];
  const { runId } = child.child as { runId: string };
  expect(await t.pawl.run(runId).get()).toMatchObject({ workflow: "part", input: 500, status: "failed" });
});

test("of 50,000 events, a window of 5,000 is read, and the answer has at most 500 spans", async () => {
  const long = workflow("long", async (ctx) => void (await ctx.waitForSignal("go")));
  const t = await startInMemory(long);
  const run = await t.pawl.start(long);
  await t.settle();
  const limits: number[] = [];
  const store = withLongLog(t.pawl.internals.store, 50_000, limits);
  const readLong = (request: WaterfallRequest) => readWaterfall(store, run.id, request);
  const latest = await readLong({});
  expect(latest).toMatchObject({ firstEvent: 45_001, lastEvent: 50_000, hasEarlier: true, hasLater: false });
  expect(countSpans(latest)).toBeLessThanOrEqual(500);
  expect(rowOf(latest, "go")).toMatchObject({ state: "waiting" });

  const middle = await readLong({ after: 20_000 });
  expect(middle).toMatchObject({ firstEvent: 20_001, lastEvent: 25_000, hasEarlier: true, hasLater: true });
  expect(countSpans(middle)).toBeLessThanOrEqual(500);
  const group = rowOf(middle, "row_*").group as { id: string; count: number };
  const parts = await readLong({ after: 20_000, expand: group.id });
  expect(parts.rows.length).toBeLessThanOrEqual(100);
  expect(parts.rows.reduce((sum, row) => sum + (row.group?.count ?? 1), 0)).toBe(group.count);
  const members = await readLong({ after: 20_000, expand: parts.rows[3]?.group?.id });
  expect(members.rows).toHaveLength(parts.rows[3]?.group?.count as number);
  expect(members.rows.every(({ group: nested }) => nested === null)).toBe(true);

  const first = await readLong({ after: 0, limit: 3 });
  expect(first).toMatchObject({ firstEvent: 1, lastEvent: 3, hasEarlier: false, hasLater: true });
  expect(Math.max(...limits)).toBe(maxWindow);
});

test("a wait, a child and a pause that began before the window are marked as cut", () => {
  const at = 1_700_000_000_000;
  const events = [
    newEvent("step.completed", { node: "a", attempt: 1, outcome: "success" }, { ms: 5 }),
    newEvent("timer.fired", { node: "nap" }, {}),
    newEvent("child.failed", { node: "deposit" }, { error: { name: "Error", message: "no" } }),
    newEvent("run.resumed", {}, { by: "operator" }),
  ].map((event, index) => ({ ...event, seq: 101 + index, at: at + index * 1_000 }));
  const { rows } = waterfallOf({
    run: { id: "r", workflow: "w", status: "running", createdAt: at - day, startedAt: at - day, finishedAt: null },
    events,
    ...{ hasLater: false, now: at + 5_000, dueAt: null, next: null, declaredNodes: null, expand: null },
  });
  expect(rows.map(({ name, spans }) => `${name} ${spans.map(({ kind, isCut }) => `${kind} ${isCut}`)}`)).toEqual([
    "w pause true",
    "a execution false",
    "nap wait true",
    "deposit wait true",
  ]);
  expect(rows[3]).toMatchObject({ kind: "child", state: "failed" });
});

test("names that differ only in numbers have one pattern", () => {
  const pairs = [
    ["mutation_12", "mutation_*"],
    ["send#2", "send"],
    ["#3/load", "#*/load"],
    ["#3/load#2", "#*/load"],
    ["send#2#compensate", "send#compensate"],
    ["mail 0190b8a2-1234-7000-8000-0123456789ab", "mail *"],
    ["plain", "plain"],
  ] as const;
  for (const [name, pattern] of pairs) expect([name, namePattern(name)]).toEqual([name, pattern]);
});

test("thousands of steps whose names have nothing in common stay within the limits as well", async () => {
  const word = (n: number) => [...String(n)].map((digit) => "abcdefghij"[Number(digit)]).join("");
  const varied = workflow("varied", async (ctx) => {
    for (let n = 0; n < 3_000; n += 1) await ctx.step(word(n), () => {});
  });
  const t = await startInMemory(varied);
  const run = await t.pawl.start(varied);
  await t.speedrun(run);
  const waterfall = await read(t, run);
  expect(waterfall.rows.length).toBeLessThanOrEqual(500);
  expect(countSpans(waterfall)).toBeLessThanOrEqual(500);
  const [, part] = waterfall.rows;
  const members = await read(t, run, { expand: part?.group?.id });
  expect(members.rows.length).toBeGreaterThan(0);
  expect(members.rows.every(({ group }) => group === null)).toBe(true);
});

test("as of an event, what had not ended then is open", async () => {
  const order = workflow("order", async (ctx) => {
    await ctx.step("reserve", () => {});
    await ctx.waitForSignal("approved");
  });
  const t = await startInMemory(order);
  const run = await t.pawl.start(order);
  await t.settle();
  const seq = (await read(t, run)).lastEvent as number;
  await t.advance("1 hour");
  await run.signal("approved");
  await t.speedrun(run);
  const then = await read(t, run, { after: 0, limit: seq });
  expect(then).toMatchObject({ lastEvent: seq, hasLater: true });
  expect(rowOf(then, "approved")).toMatchObject({ state: "waiting" });
  expect(then.rows[0]).toMatchObject({ state: "running" });
  expect(then.to).toBeLessThan(then.now);
});
