/** What a run's log shows to humans: its nodes, its timeline, and its state at any event. */
import { branch, graph, step, Workflow, workflow } from "pawl";
import { expect, test } from "vitest";
import { start, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const a = step("a", () => 1);
const b = step("b", async (ctx) => {
  await ctx.step("part", () => 2);
  await ctx.sleep("nap", "1 day");
});
const [left, right] = [step("left", () => "l"), step("right", () => "r")];
const drawn = graph("drawn", [
  a,
  b.after(a),
  branch("way", () => "left" as const, { left: [left], right: [right] }).after(a),
  step("end", () => "end").after(b),
]);

test("nodes() lists every node that the graph declares, with its state", async () => {
  const t = await start(drawn);
  const run = await t.pawl.start(drawn);
  await t.settle();
  const states = async () =>
    (await run.nodes()).map(({ name, kind, state, after }) => [name, kind, state, after.join()]);
  expect(await states()).toEqual([
    ["a", "step", "completed", ""],
    ["b", "step", "executing", "a"],
    ["way", "branch", "completed", "a"],
    ["end", "step", "pending", "b"],
    ["left", "step", "completed", "way"],
    ["right", "step", "skipped", "way"],
  ]);
  await t.speedrun(run);
  expect((await run.nodes()).every(({ state }) => state === "completed" || state === "skipped")).toBe(true);
});

test("nodes() of a class lists its chain, and of a function the steps it has reached; steps missing from the code are shown", async () => {
  const chain = (names: string[]) =>
    class Chain extends Workflow {
      static {
        this.options({ name: "Chain" });
        for (const name of names) this.step(name, name === "late" ? { wait: "1 day" } : {}, () => {});
      }
    };
  const plain = workflow("plain", async (ctx) => ctx.step("only", () => 1));
  const w = await world();
  const first = await w.worker([chain(["one", "late"]), plain]);
  const [run, other] = [await w.pawl.start(chain(["one", "late"])), await w.pawl.start(plain)];
  await first.settle();
  expect((await run.nodes()).map(({ name, state }) => `${name} ${state}`)).toEqual(["one completed", "late scheduled"]);
  expect((await other.nodes()).map(({ name, state }) => `${name} ${state}`)).toEqual(["only completed"]);
  await first.worker.stop();
  await w.worker([chain(["late", "more"])]);
  expect((await run.nodes()).map(({ name, state }) => `${name} ${state}`)).toEqual([
    "late scheduled",
    "more pending",
    "one removed",
  ]);
});

test("timeline() has an interval for each execution, in the order in which they started", async () => {
  const t = await start(drawn);
  const run = await t.pawl.start(drawn);
  const begin = t.clock.read();
  await t.speedrun(run);
  const timeline = await run.timeline();
  expect(timeline.map(({ step: name }) => name)).toEqual(expect.arrayContaining(["a", "b", "b/part", "end", "left"]));
  expect(timeline.at(-1)).toMatchObject({ step: "end", outcome: "success", to: new Date(begin + 86_400_000) });
  for (const { from, to } of timeline) if (from !== null) expect(to?.getTime()).toBeGreaterThanOrEqual(from.getTime());
});

test("stateAt(seq) rebuilds the run as it was after that event", async () => {
  const t = await start(drawn);
  const run = await t.pawl.start(drawn);
  await t.speedrun(run);
  const history = await run.history();
  const fired = history.find(({ type }) => type === "timer.fired")?.seq as number;
  const before = await run.stateAt(fired - 1);
  expect(before).toMatchObject({ seq: fired - 1, status: "waiting", waitingFor: [{ kind: "sleep", name: "b/nap" }] });
  expect(before.steps).toContainEqual({ name: "b", state: "executing", attempt: 1 });
  expect((await run.stateAt(fired)).waitingFor).toEqual([]);
  expect(await run.stateAt(0)).toMatchObject({ seq: 0, status: "pending", steps: [], at: null });
  expect(await run.stateAt(history.length)).toMatchObject({ status: "completed" });
  expect(await errorOf(run.stateAt(-1))).toMatchObject({ code: "INVALID_INPUT" });
});
