/** The frozen graph: plain data with the fields of the design, and a signature of the plan. */
import { job } from "pawl";
import { expect, test } from "vitest";
import { startJobs } from "./job-world.js";

const noop = job("Noop", () => {});

test("the JSON has exactly the fields of the design, and ids that are not names", async () => {
  const t = await startJobs(noop);
  const run = await t.pawl.build("order", (g) => {
    g.node("validate", { job: "Noop", args: { order_id: 123 } });
    g.node("check_inventory", { job: noop });
  });
  const text = await run.exportDag();
  const dag = JSON.parse(text);
  expect(Object.keys(dag)).toEqual(["version", "signature", "frozen_at", "nodes"]);
  expect(dag.version).toBe(1);
  expect(dag.signature).toMatch(/^[0-9a-f]{16}$/);
  expect(dag.frozen_at).toBe(t.clock.now.toISOString());
  const ids = Object.keys(dag.nodes);
  for (const id of ids) expect(id).toMatch(/^n_[0-9a-f]{8}$/);
  expect(Object.values(dag.nodes)).toEqual([
    { name: "validate", job: "Noop", args: { order_id: 123 }, depends_on: [] },
    { name: "check_inventory", job: "Noop", depends_on: [ids[0]] },
  ]);
  expect((await run.get()).input).toEqual(dag);
  expect(text.endsWith("}\n")).toBe(true);
});

test("the options of the run are frozen with the graph", async () => {
  const t = await startJobs(noop);
  const options = { concurrency: 3, onNodeFailure: "continue" } as const;
  const run = await t.pawl.build("order", (g) => g.node("a", { job: noop }), options);
  expect(JSON.parse(await run.exportDag()).options).toEqual(options);
});

test("later changes to values of the builder do not change the frozen graph", async () => {
  const t = await startJobs(noop);
  const args = { n: 1 };
  const run = await t.pawl.build("order", (g) => g.node("a", { job: "Noop", args }), { start: false });
  args.n = 2;
  expect(Object.values(JSON.parse(await run.exportDag()).nodes)).toMatchObject([{ args: { n: 1 } }]);
});

test("the signature changes with names, jobs and dependencies, and with nothing else", async () => {
  const t = await startJobs(noop);
  type Build = Parameters<typeof t.pawl.build>[1];
  const signature = async (build: Build, name = "order") =>
    JSON.parse(await (await t.pawl.build(name, build, { start: false })).exportDag()).signature as string;
  const plain: Build = (g) => {
    g.node("a", { job: "X" });
    g.node("b", { job: "X", dependsOn: null });
    g.node("c", { job: "X", dependsOn: ["a", "b"] });
  };
  const first = await signature(plain);
  t.clock.moveTo(t.clock.read() + 60_000);
  expect(await signature(plain)).toBe(first);
  expect(await signature(plain, "another")).toBe(first);
  const same: Build = (g) => {
    g.node("c", { job: "X", args: { n: 1 }, dependsOn: ["b", "a"] });
    g.node("b", { job: "X", args: 5, dependsOn: null });
    g.node("a", { job: "X", dependsOn: null });
  };
  expect(await signature(same)).toBe(first);
  const others: Build[] = [
    (g) => {
      plain(g);
      g.node("d", { job: "X" });
    },
    (g) => {
      g.node("a", { job: "X" });
      g.node("b", { job: "Y", dependsOn: null });
      g.node("c", { job: "X", dependsOn: ["a", "b"] });
    },
    (g) => {
      g.node("a", { job: "X" });
      g.node("b", { job: "X", dependsOn: null });
      g.node("c", { job: "X", dependsOn: ["a"] });
    },
    (g) => {
      g.node("a", { job: "X" });
      g.node("b2", { job: "X", dependsOn: null });
      g.node("c", { job: "X", dependsOn: ["a", "b2"] });
    },
  ];
  const signatures = await Promise.all(others.map((build) => signature(build)));
  expect(new Set([first, ...signatures]).size).toBe(5);
});
