/** `explain`, `retry`, `metrics`, `queues`, `prune`, `reattempt`, `dag`: commands for operators. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "pawl";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/waiting.js";
import { type Folder, jobsFile, newFolder } from "./command-line.js";
import { double, needsFile } from "./fixtures/jobs.js";
import { folderWithSampleRuns, type SampleRuns, silent, withWorker } from "./sample-runs.js";

const unknown = "01980000-0000-7000-8000-000000000000";

let samples: SampleRuns;
beforeAll(async () => {
  samples = await folderWithSampleRuns();
});
afterAll(() => samples.folder.remove());

test("explain says why a run makes no progress", async () => {
  const { folder, ids } = samples;
  expect(await folder.text("explain", ids.order)).toMatch(
    /^It waits for the signal "approved", since .* \(.*\), until .* \(in 7 days\) at the latest\.\n$/,
  );
  expect(await folder.json("explain", ids.held)).toMatchObject({
    because: "paused",
    text: expect.stringContaining("somebody has to look"),
    since: expect.stringMatching(/^\d{4}-.*Z$/),
    until: null,
  });
  expect(await folder.error("explain", unknown)).toBe(`Run ${unknown} does not exist; it may have been pruned.`);
});

test("retry starts a run that continues where another failed", async () => {
  const { folder, ids } = samples;
  const text = await folder.text("retry", ids.declined);
  const [, id] = /^Run (\S+) of declined continues where run (\S+) failed\.\n$/.exec(text) ?? [];
  expect(await folder.json("show", id as string)).toMatchObject({ workflow: "declined", status: "pending" });
  expect((await folder.json("retry", ids.declined)).id).toBe(id);
  await folder.text("cancel", id as string);
  const again = await folder.json("retry", ids.declined);
  expect(again).toMatchObject({ workflow: "declined", status: "pending" });
  expect([ids.declined, id]).not.toContain(again.id);
  await folder.text("cancel", again.id);
  expect(await folder.error("retry", ids.echo)).toBe(
    `Run ${ids.echo} is completed; only a run that has failed can be retried.`,
  );
});

test("metrics prints the figures of all workflows, and the details of one", async () => {
  const { folder } = samples;
  const lines = (await folder.text("metrics")).trimEnd().split("\n");
  expect(lines[0]).toMatch(/^workflow +runs +failed +paused +success +p50 +p95 +due +oldest$/);
  expect(lines.find((line) => line.startsWith("flaky "))).toMatch(/^flaky +1 +0 +0 +100% +\S+ +\S+ +0$/);
  expect(lines.find((line) => line.startsWith("endless "))).toMatch(/^endless +0 +0 +0 +0$/);
  expect(lines.find((line) => line.startsWith("held "))).toMatch(/^held +1 +0 +1 +0$/);
  const all = await folder.json("metrics");
  expect(all.map(({ workflow }: { workflow: string }) => workflow)).toContain("sorting");

  const detail = await folder.text("metrics", "held", "--since", "1h");
  expect(detail).toMatch(/^held\n {2}runs {6}1 run since 1h ago, 1 paused\n {2}success {3}no run has ended\n/);
  expect(detail).toMatch(/^ {2}took {6}nothing to measure\n {2}waited {4}mean /m);
  expect(detail).toMatch(/^ {2}queue {5}held: 0 due, 0 running\n {2}workers {3}none is live\n$/m);
  expect(await folder.json("metrics", "echo")).toMatchObject({
    workflow: "echo",
    truncated: false,
    runs: { total: 2, completed: 1, pending: 1, active: 1, failed: 0 },
    successRate: 1,
    queue: { name: "echo", depth: 0, paused: null },
  });
});

test.each([
  [["metrics", "nobody_has_this"], /nobody_has_this/],
  [["metrics", "--since", "soon"], '--since takes a date (2025-11-16) or how long ago ("2h"), not "soon".'],
  [["queues", "--pause", "nobody"], /^There is no queue "nobody"; there are .*"echo"/],
  [["queues", "--pause", "echo", "--resume", "echo"], "Give --pause or --resume, not both."],
  [["queues", "--reason", "why not"], "--reason goes with --pause <queue>."],
  [["prune"], "--older-than is missing; say how old: pawl prune --older-than 30d"],
  [["prune", "--older-than", "a while"], /"a while" is not a duration/],
  [["prune", "--older-than", "1h", "--limit", "few"], '--limit takes a whole number, not "few".'],
  [
    ["prune", "--older-than", "1h", "--workflow", "nope"],
    'There is no workflow "nope" in this database, and no run of it.',
  ],
  [
    ["prune", "--older-than", "1h", "--workflow", "flakey"],
    'There is no workflow "flakey" in this database, and no run of it; did you mean "flaky"?',
  ],
  [["dag", "delete", unknown], 'A graph can be exported or imported: pawl dag export|import, not "delete".'],
  [["dag", "import", unknown, "missing.json"], /^missing\.json cannot be read: ENOENT/],
  [["reattempt", unknown], "<node> is missing. Usage: pawl reattempt <run> <node>"],
])("%j is refused in one sentence", async (args, sentence) => {
  const complaint = await samples.folder.error(...args);
  if (typeof sentence === "string") expect(complaint).toBe(sentence);
  else expect(complaint).toMatch(sentence);
});

test("queues lists, pauses and resumes queues", async () => {
  const { folder } = samples;
  const paused = await folder.text("queues", "--pause", "echo", "--reason", "too loud");
  expect(paused).toMatch(/^queue +due +oldest +running +workers +workflows\b/);
  expect(paused).toMatch(/^echo +0 +0 +0 +echo +paused now too loud$/m);
  const { id } = await folder.json("start", "echo", "1");
  await withWorker(folder, async (pawl) => {
    expect((await folder.json("explain", id)).because).toBe("queue_paused");
    const queues = await folder.json("queues", "--resume", "echo");
    expect(queues.find(({ name }: { name: string }) => name === "echo")).toMatchObject({
      workflows: ["echo"],
      workers: [expect.any(String)],
      paused: null,
    });
    expect(await pawl.run(id).result()).toBe(1);
  });
});

test("prune deletes runs that ended long enough ago", async () => {
  const { folder, ids } = await folderWithSampleRuns();
  try {
    expect(await folder.text("prune", "--older-than", "30d")).toBe("Nothing to delete.\n");
    expect(await folder.text("prune", "--older-than", "0ms", "--dry-run")).toBe("Would delete 3 runs.\n");
    expect(await folder.json("prune", "--older-than", "0ms", "--workflow", "flaky", "--dry-run")).toEqual({
      runs: 1,
      trees: 1,
      dryRun: true,
    });
    expect((await folder.json("runs")).runs).toHaveLength(7);
    expect(await folder.json("prune", "--older-than", "0ms", "--workflow", "flaky")).toEqual({ runs: 1, trees: 1 });
    expect(await folder.error("show", ids.flaky)).toContain("does not exist");
    expect(await folder.text("prune", "--older-than", "0ms", "--limit", "1")).toBe("Deleted 1 run.\n");
    expect(await folder.text("prune", "--older-than", "0ms")).toBe("Deleted 1 run.\n");
    expect((await folder.json("runs")).runs).toHaveLength(4);
  } finally {
    await folder.remove();
  }
});

/** A graph run that is stuck because a file is missing. */
async function stuckGraph(folder: Folder) {
  const pawl = await connect(folder.url, { logger: silent });
  const worker = await pawl.worker({ workflows: [], jobs: [double, needsFile] }).start();
  const file = join(folder.path, "needed");
  const run = await pawl.build("import", (g) => {
    const first = g.node("first", { job: double, args: { n: 21 } });
    g.node("second", { job: needsFile, args: { file }, dependsOn: [first] });
  });
  await until(async () => (await run.status()) === "paused");
  await worker.stop();
  await pawl.close();
  return { id: run.id, file };
}

test("reattempt lists the nodes of a graph; for a function it says that there are none and what to do", async () => {
  const { folder, ids } = samples;
  expect(await folder.error("reattempt", ids.onboarding, "welcom")).toBe(
    `Run ${ids.onboarding} has no node "welcom"; it has "welcome", "say "hi"".`,
  );
  expect(await folder.error("reattempt", ids.held, "ask")).toBe(
    `Run ${ids.held} has no nodes that can be tried again: it is a function, whose steps are known only as its code runs. If it is paused, resume it; if it has failed, retry it.`,
  );
});

test("reattempt lists only the first of many nodes", async () => {
  const folder = newFolder();
  const pawl = await connect(folder.url, { logger: silent });
  const run = await pawl.build("wide", (g) => {
    for (let n = 1; n <= 25; n += 1) g.node(`n${n}`, { job: double, args: { n } });
  });
  await pawl.close();
  expect(await folder.error("reattempt", run.id, "n26")).toMatch(/; it has "n1", .*"n20" and 5 more\.$/);
});

test("prune accepts the name of a graph that was built at run time", async () => {
  const folder = newFolder();
  await stuckGraph(folder);
  expect(await folder.text("prune", "--older-than", "0ms", "--workflow", "import")).toBe("Nothing to delete.\n");
});

test("show prints the nodes of a graph by name, up to a limit", async () => {
  const folder = newFolder();
  const { id } = await stuckGraph(folder);
  const text = await folder.text("show", id);
  expect(text).toContain(`\n  input     a graph of 2 nodes; all of it: pawl dag export ${id}\n`);
  expect(text).toMatch(/^ {2}first +completed /m);
  expect(text).toMatch(/^ {2}second +failed .*the file is missing$/m);
  expect(text).toMatch(/^It has been paused at node "second" since /m);
  expect(text).not.toContain("n_");
  const { executions, input } = await folder.json("show", id);
  expect(executions.map(({ step, node }: any) => [step, input.nodes[node].name])).toEqual([
    ["first", "first"],
    ["second", "second"],
  ]);
});

test("dag exports the graph of a run and imports the edited graph", async () => {
  const folder = newFolder();
  const { id } = await stuckGraph(folder);
  const graph = await folder.json("dag", "export", id);
  expect(Object.values(graph.nodes).map(({ name, job }: any) => `${name} ${job}`)).toEqual([
    "first Double",
    "second NeedsFile",
  ]);
  expect(JSON.parse(await folder.text("dag", "export", id))).toEqual(graph);
  expect(await folder.text("dag", "export", id, "graph.json")).toBe(`Wrote the graph of run ${id} to graph.json.\n`);
  expect(JSON.parse(readFileSync(join(folder.path, "graph.json"), "utf8"))).toEqual(graph);

  const [, second] = Object.keys(graph.nodes) as [string, string];
  graph.nodes[second] = { ...graph.nodes[second], job: "Double", args: { n: 4 } };
  folder.write("graph.json", JSON.stringify(graph));
  expect(await folder.text("dag", "import", id, "graph.json")).toBe(
    `Run ${id} uses this graph from now on; continue it with: pawl resume\n`,
  );
  const again = await folder.pawlWith({ input: JSON.stringify(graph) }, "dag", "import", id, "--json");
  expect(JSON.parse(again.stdout)).toMatchObject({ id, status: "paused" });
  folder.write("graph.json", '{\n  "version": 1,\n  "nodes": {,}\n}');
  expect(await folder.error("dag", "import", id, "graph.json")).toBe(
    "graph.json is not valid JSON: it breaks at line 3, column 13.",
  );
  const piped = await folder.pawlWith({ input: '{"version": 1' }, "dag", "import", id);
  expect(piped.stderr).toBe("Standard input is not valid JSON: it breaks at line 1, column 14.\n");
  folder.write("graph.json", "{}");
  expect(await folder.error("dag", "import", id, "graph.json")).toMatch(/nodes|version/);

  await folder.text("resume", id);
  const worker = folder.begin(["worker", jobsFile, "--json"]);
  await worker.until(`"runId":"${id}"`);
  const { stdout } = await worker.stop();
  expect(JSON.parse(stdout.split("\n")[0] as string)).toMatchObject({ workflows: [], jobs: ["Double", "NeedsFile"] });
  // The previous job would have failed again.
  expect(await folder.json("show", id)).toMatchObject({ status: "completed" });
});

test("reattempt runs a node again on a worker with jobs", async () => {
  const folder = newFolder();
  const { id, file } = await stuckGraph(folder);
  expect(await folder.error("reattempt", id, "nowhere")).toBe(
    `Run ${id} has no node "nowhere"; it has "first", "second".`,
  );
  expect(await folder.error("reattempt", id, "first")).toMatch(/completed/);
  folder.write("needed", "");
  expect(file).toBe(join(folder.path, "needed"));
  expect(await folder.text("reattempt", id, "second")).toMatch(new RegExp(`^Run ${id} of import is \\w+\\.\\n$`));
  const worker = folder.begin(["worker", jobsFile]);
  await worker.until(`import ${id}`);
  expect((await worker.stop()).stdout).toMatch(/ serves job Double, job NeedsFile on /);
  expect(await folder.json("show", id)).toMatchObject({ status: "completed" });
  expect(await folder.error("reattempt", id, "second", "--json")).toContain("completed");
});
