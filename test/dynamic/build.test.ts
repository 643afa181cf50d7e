/** Graphs that are built at run time: frozen, run by whoever has the jobs, inspected. */
import { job } from "pawl";
import { testPawl } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";

test("first", async () => {
  const did: string[] = [];
  const process = job("Process", (args: { id: number }, { node, attempt }) => {
    did.push(`${node.name} ${args.id} ${attempt}`);
    return args.id * 2;
  });
  const flaky = job("Flaky", (_args: void, { attempt }) => {
    if (attempt < 3) throw new Error(`no ${attempt}`);
    return attempt;
  });
  const t = await testPawl({ workflows: [], jobs: [process, flaky] });
  onTestFinished(() => t.close());
  const run = await t.pawl.build("import", (g) => {
    const parts = g.fanOut([1, 2, 3], { name: (id) => `part_${id}`, job: process, args: (id) => ({ id }) });
    g.node("join", { job: process, args: { id: 9 }, dependsOn: parts });
    g.node("last", { job: flaky });
  });
  await t.speedrun(run);
  console.log(
    did,
    await run.get(),
    (await run.history()).map((e) => `${e.seq} ${e.type} ${e.node} ${e.attempt} ${JSON.stringify(e.data)}`).join("\n"),
  );
  console.log(
    (await run.nodes()).map((n) => `${n.name} ${n.state} ${n.attempt} ${n.after} ${n.ancestryHash?.slice(0, 6)}`),
  );
  expect((await t.pawl.verify()).differences).toEqual([]);
});
