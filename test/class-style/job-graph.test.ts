/** The graph of a class whose steps name jobs: the output of nodes() and exportDag(), and the effect of an import. */
import { job, Workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { forMemoryAnd } from "../support/effort.js";
import { expectSound } from "../support/run-checks.js";
import { databaseFor, silent } from "../support/virtual-worlds.js";

let executed: string[] = [];
beforeEach(() => {
  executed = [];
});

const resize = job(
  "Resize",
  (args: { file: string }, { node }) => void executed.push(`resize ${node.name} ${args.file}`),
);
const shrink = job(
  "Shrink",
  (args: { file: string }, { node }) => void executed.push(`shrink ${node.name} ${args.file}`),
);

class Photo extends Workflow<unknown, { file: string }> {
  static {
    this.step("open", () => void executed.push("open"));
    this.task("small", { job: resize, args: (w: Photo) => ({ file: w.input.file }), dependsOn: "open" });
    this.task("tiny", { job: "Shrink", args: { file: "t.png" }, dependsOn: "open" });
    this.step("close", { alsoDependsOn: ["small", "tiny"] }, () => void executed.push("close"));
  }
  override async beforeStepExecution({ step }: { step: string }) {
    executed.push(`before ${step}`);
  }
}

const begin = async () => {
  const t = await testPawl({ workflows: [Photo], jobs: [resize, shrink], logger: silent });
  onTestFinished(() => t.close());
  const run = await t.pawl.start(Photo, { file: "a.png" });
  await run.pause();
  return { t, run };
};

forMemoryAnd("mysql", (kind) => {
  const database = databaseFor(kind);

  test("nodes() and exportDag() of a class name the jobs of its steps", async () => {
    const w = await database.world();
    await w.worker([Photo], { jobs: [resize, shrink] });
    const run = await w.pawl.start(Photo, { file: "a.png" });
    expect((await run.nodes()).map(({ name, kind, job }) => ({ name, kind, job }))).toEqual([
      { name: "open", kind: "step", job: null },
      { name: "small", kind: "job", job: "Resize" },
      { name: "tiny", kind: "job", job: "Shrink" },
      { name: "close", kind: "step", job: null },
    ]);
    expect(JSON.parse(await run.exportDag()).nodes).toEqual({
      open: { name: "open", depends_on: [] },
      small: { name: "small", job: "Resize", depends_on: ["open"] },
      tiny: { name: "tiny", job: "Shrink", depends_on: ["open"] },
      close: { name: "close", depends_on: ["open", "small", "tiny"] },
    });
    // Otherwise the effects of this run would be recorded in the next test.
    await run.result();
  });
});

test("importing the exported graph changes nothing: arguments, hooks and policies still come from the class", async () => {
  const { t, run } = await begin();
  await run.importDag(await run.exportDag());
  await run.resume();
  await t.settle();
  expect(await run.status()).toBe("completed");
  expect(executed).toEqual(
    expect.arrayContaining(["before small", "resize small a.png", "before tiny", "shrink tiny t.png"]),
  );
  expect(executed.filter((line) => line.startsWith("before"))).toHaveLength(4);
  await expectSound(t);
});

test("another job in the place of a step's own job gets the arguments that the class declares", async () => {
  const { t, run } = await begin();
  const dag = JSON.parse(await run.exportDag());
  dag.nodes.small.job = "Shrink";
  await run.importDag(dag);
  await run.resume();
  await t.settle();
  expect(await run.status()).toBe("completed");
  expect(executed).toEqual(expect.arrayContaining(["before small", "shrink small a.png"]));
  expect((await run.nodes()).find(({ name }) => name === "small")).toMatchObject({ kind: "job", job: "Shrink" });
  await expectSound(t);
});
