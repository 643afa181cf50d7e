/** `workers`, `migrate`, `verify`, `doctor`, `graph`: commands for operators. */
import { connect, limit, schedule, workflow } from "pawl";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Check } from "../../src/client/operate/check.js";
import { runClassOf } from "../../src/core/limits/lane.js";
import { rawSql } from "../support/raw-sql.js";
import { until } from "../support/waiting.js";
import { errorIn, type Folder, jobsFile, newFolder, workflows } from "./command-line.js";
import { echo, endless, held, order } from "./fixtures/workflows.js";
import { folderWithSampleRuns, type SampleRuns, silent, withWorker } from "./sample-runs.js";

let samples: SampleRuns;
beforeAll(async () => {
  samples = await folderWithSampleRuns();
});
afterAll(() => samples.folder.remove());

const alter = async ({ url }: Folder, statement: string) => {
  const sql = await rawSql(url);
  await sql.query(statement);
  await sql.close();
};

test("workers lists live workers, and with --all also stopped ones", async () => {
  const { folder } = samples;
  expect(await folder.text("workers")).toBe("No live workers; --all shows the stopped ones.\n");
  expect(await folder.json("workers")).toEqual([]);
  const [gone] = await folder.json("workers", "--all");
  expect(gone).toMatchObject({ state: "stopped", live: false, executing: 0, pid: process.pid });
  expect(gone.heartbeatAt).toMatch(/^\d{4}-.*Z$/);
  await withWorker(folder, async () => {
    const [head, line, ...more] = (await folder.text("workers")).trimEnd().split("\n");
    expect(head).toMatch(/^name +state +host +pid +runs +last heartbeat +lag +serves$/);
    expect(line).toMatch(new RegExp(` live +\\S+ +${process.pid} +0 +.* Onboarding, decl`));
    expect(more).toEqual([]);
    expect((line as string).length).toBeLessThanOrEqual(80);
  });
});

test("a killed worker is shown as silent, and doctor warns about it", async () => {
  const folder = newFolder();
  expect(await folder.text("migrate")).toContain("applied migration");
  expect(await folder.text("workers")).toBe("No workers.\n");
  const worker = folder.begin(["worker", workflows, "--name", "killed"]);
  await worker.until("serves");
  await worker.kill();
  await alter(folder, "UPDATE pawl_workers SET heartbeat_at = heartbeat_at - 60000");
  expect(await folder.json("workers")).toMatchObject([{ name: "killed", state: "expired", live: false }]);
  const { checks } = await folder.json("doctor");
  expect(checks).toContainEqual({ name: "workers", verdict: "warning", text: "lease expired: killed" });
});

test("workers lists jobs by name and hides the internal queues of Pawl", async () => {
  const folder = newFolder();
  const worker = folder.begin(["worker", jobsFile, "--name", "jobs-1"]);
  await worker.until("serves");
  expect(await folder.text("workers")).toMatch(/^jobs-1 .* jobs: Double, NeedsFile$/m);
  expect(await folder.json("workers")).toMatchObject([
    { name: "jobs-1", workflows: [], jobs: ["Double", "NeedsFile"] },
  ]);
});

test("migrate creates the tables once, and --status lists what is pending", async () => {
  const folder = newFolder();
  folder.write("pawl.db", "");
  const { pending } = await folder.json("migrate", "--status");
  expect(pending).toEqual(pending.map((_: number, index: number) => index + 1));
  expect(await folder.text("migrate", "--status")).toMatch(/^sqlite \.\/pawl\.db lacks migrations? 1.*\.\n$/);
  expect(await folder.json("migrate")).toEqual({ database: "sqlite ./pawl.db", applied: pending });
  expect(await folder.text("migrate")).toBe("sqlite ./pawl.db was up to date.\n");
  expect(await folder.text("migrate", "--status")).toBe("sqlite ./pawl.db is up to date.\n");
  expect(await folder.json("migrate", "--status")).toEqual({ database: "sqlite ./pawl.db", pending: [] });
});

test("verify reports nothing for a sound database", async () => {
  const { folder, ids } = samples;
  expect(await folder.text("verify")).toMatch(/^7 runs, \d+ events: the tables match the logs\.\n$/);
  expect(await folder.json("verify", ids.order)).toMatchObject({ runs: 1, differences: [] });
  const unknown = "01980000-0000-7000-8000-000000000000";
  expect(await folder.error("verify", unknown)).toBe(`Run ${unknown} does not exist; it may have been pruned.`);
});

test("verify prints every difference and exits with an error", async () => {
  const { folder, ids } = await folderWithSampleRuns();
  try {
    await alter(folder, `UPDATE pawl_runs SET status = 'waiting' WHERE id = '${ids.held}'`);
    const answer = await folder.pawl("verify");
    expect(errorIn(answer)).toMatch(/^7 runs, \d+ events: 1 difference\.$/);
    expect(answer.stdout).toContain(`Run ${ids.held} has another status in its row ("waiting") than its log says`);
    expect(answer.stdout).toMatch(/^run\.status +Run /m);
    const asJson = await folder.pawl("verify", ids.held, "--json");
    expect(asJson.code).toBe(1);
    expect(JSON.parse(asJson.stdout).differences).toEqual([
      { kind: "run.status", runId: ids.held, log: "paused", table: "waiting", text: expect.any(String) },
    ]);
  } finally {
    await folder.remove();
  }
});

test("runs lists a damaged run with the others, and names the field that cannot be read", async () => {
  const { folder, ids } = await folderWithSampleRuns();
  try {
    await alter(folder, `UPDATE pawl_runs SET tags = '{' WHERE id = '${ids.held}'`);
    const lines = (await folder.text("runs")).split("\n");
    expect(lines.filter((line) => line.startsWith(ids.held))).toEqual([expect.stringMatching(/ held +damaged /)]);
    expect(lines.length).toBeGreaterThan(6);
    expect(await folder.error("show", ids.held)).toContain(`Run ${ids.held} cannot be read: its tags is damaged`);
  } finally {
    await folder.remove();
  }
});

test("show says why a run with a damaged log is paused, and cancel ends it", async () => {
  const { folder, ids } = await folderWithSampleRuns();
  try {
    const reason = `Run ${ids.held} cannot be read: event 1 of its log is damaged (its row cannot be read).`;
    const note = JSON.stringify({ seenVersion: -1, waitingFor: [], paused: reason, pausedAt: 1_700_000_000_000 });
    await alter(folder, `UPDATE pawl_events SET type = 'batch', data = '{' WHERE run_id = '${ids.held}'`);
    await alter(folder, `UPDATE pawl_runs SET waiting = '${note}' WHERE id = '${ids.held}'`);
    expect(await folder.text("show", ids.held)).toContain(
      `until its log is repaired and an operator resumes it: ${reason}`,
    );
    expect(await folder.error("resume", ids.held)).toBe(
      `${reason} Restore what is missing and resume(), or end the run with cancel().`,
    );
    await folder.text("cancel", ids.held);
    expect(await folder.json("show", ids.held)).toMatchObject({ status: "canceled", executions: [] });
  } finally {
    await folder.remove();
  }
});

test("doctor and migrate say that the tables are newer than the program", async () => {
  const folder = newFolder();
  expect(await folder.text("migrate")).toContain("applied migration");
  await alter(folder, "INSERT INTO pawl_migrations (version, name, at) VALUES (7, 'later', 1)");
  const newer = "The tables have version 7, and this Pawl knows them up to version 1";
  expect(await folder.error("migrate")).toContain(newer);
  expect(await folder.error("runs")).toContain(newer);
  const { checks } = JSON.parse((await folder.pawl("doctor", "--json")).stdout);
  expect(checks).toContainEqual({ name: "migrations", verdict: "problem", text: expect.stringContaining(newer) });
});

test("doctor reports only ok when nothing needs attention", async () => {
  const folder = newFolder();
  await withWorker(folder, async (pawl) => {
    await pawl.start(echo, 1, { delay: "1 day" });
    await folder.text("queues", "--pause", "order");
    const { checks } = await folder.json("doctor");
    expect(checks.map(({ name, verdict }: any) => `${name} ${verdict}`)).toEqual([
      "node ok",
      "settings ok",
      "driver ok",
      "connection ok",
      "migrations ok",
      "clock ok",
      "workers ok",
      "runs ok",
    ]);
    expect(await folder.text("doctor")).toMatch(
      /^ok {7}settings {4}sqlite:\.\/pawl\.db \(the default\); no configuration file$/m,
    );
  });
});

test("doctor warns about runs without a live worker, by workflow", async () => {
  const text = await samples.folder.text("doctor");
  expect(text).toMatch(/^warning {2}workers {5}none is live; run: pawl worker <file>$/m);
  expect(text).toMatch(/^warning {2}runs {8}no live worker serves: .*order \(1\)/m);
  expect(text).not.toMatch(/no live worker serves: .*held/);
});

test("doctor reports paused runs, and paused queues with due runs", async () => {
  const folder = newFolder();
  await withWorker(folder, async (pawl) => {
    const runs = [await pawl.start(held), await pawl.start(held), await pawl.start(order, { sku: "A-1" })];
    await runs[2]?.pause();
    await until(async () => (await Promise.all(runs.map((run) => run.status()))).every((one) => one === "paused"));
    await pawl.pauseQueue("echo");
    await pawl.start(echo, 1);
    const { checks } = await folder.json("doctor");
    expect(checks.slice(-3)).toEqual([
      expect.objectContaining({ name: "runs", verdict: "ok" }),
      {
        name: "runs",
        verdict: "warning",
        text: expect.stringMatching(
          /^3 paused: (held \(2\), order \(1\)|order \(1\), held \(2\)); see: pawl runs --status paused$/,
        ),
      },
      {
        name: "queues",
        verdict: "warning",
        text: "paused with runs due in them: echo (1); run: pawl queues --resume <name>",
      },
    ]);
  });
});

test("doctor reports runs that are still owned by a dead worker, also when a live worker could take them", async () => {
  const folder = newFolder();
  const worker = folder.begin(["worker", workflows, "--name", "killed"]);
  await worker.until("serves");
  const { id } = await folder.json("start", "endless");
  await until(async () => (await folder.json("show", id)).status === "running");
  const runs = async () => (await folder.json("doctor")).checks.find(({ name }: Check) => name === "runs");
  expect(await runs()).toMatchObject({ verdict: "ok", text: "every open run has a worker that serves it" });

  await worker.kill();
  await alter(folder, "UPDATE pawl_workers SET heartbeat_at = heartbeat_at - 60000");
  const orphaned = "still owned by a dead worker: killed (1)";
  expect(await runs()).toMatchObject({ verdict: "warning", text: `no live worker serves: endless (1); ${orphaned}` });
  const pawl = await connect(folder.url, { logger: silent });
  // This worker would take the run over with its first heartbeat, which comes in twenty minutes.
  await pawl.worker({ workflows: [endless], lease: "1 hour" }).start();
  expect(await runs()).toMatchObject({ verdict: "warning", text: orphaned });
  await pawl.close();
});

test("doctor names graphs by their own names, and says how many runs it checked", async () => {
  const folder = newFolder();
  const pawl = await connect(folder.url, { logger: silent });
  await pawl.build("import", (g) => g.node("first", { job: "Double" }));
  expect(await folder.text("doctor")).toMatch(/^warning {2}runs {8}no live worker serves: graph import \(1\)$/m);
  await pawl.worker({ workflows: [echo], jobs: [] }).start();
  await pawl.startMany(echo, Array(1_000).fill(1), { delay: "1 day" });
  expect(await folder.text("doctor")).toMatch(
    /^ok {7}runs {8}each of the latest 1,000 open runs has a worker that serves it$/m,
  );
  await pawl.close();
});

test("doctor exits with an error at the first problem", async () => {
  const folder = newFolder();
  folder.write("pawl.db", "");
  const answer = await folder.pawl("doctor", "--json");
  expect(errorIn(answer)).toBe("Problems found: migrations.");
  expect(JSON.parse(answer.stdout).checks.at(-1)).toMatchObject({ name: "migrations", verdict: "problem" });
  const refused = await folder.pawl("doctor", "--url", "postgres://nobody:secret@127.0.0.1:1/none");
  expect(errorIn(refused)).toBe("Problems found: connection.");
  expect(refused.stdout).toContain("ECONNREFUSED");
  expect(refused.stdout).toContain("postgres://nobody:…@127.0.0.1:1/none (from --url)");
});

test("graph draws classes and graphs as Mermaid, and leaves out functions", async () => {
  const { folder } = samples;
  const text = await folder.text("graph", workflows);
  expect(text).toContain("%% Onboarding\nflowchart TD\n");
  expect(text).toContain("%% sorting\nflowchart TD\n");
  expect(text).not.toContain("echo");
  expect(await folder.text("graph", workflows, "--workflow", "Onboarding")).toBe(
    'flowchart TD\n  n1["welcome"]\n  n2["say #34;hi#34;"]\n  n1 --> n2\n',
  );
});

test("graph --json prints the shape as data", async () => {
  const { folder } = samples;
  const graphs = await folder.json("graph", workflows);
  expect(graphs.map(({ name }: { name: string }) => name).sort()).toEqual(["Onboarding", "sorting"]);
  const [sorting] = await folder.json("graph", workflows, "--workflow", "sorting");
  expect(sorting).toMatchObject({
    name: "sorting",
    signature: expect.stringMatching(/^[0-9a-f]+$/),
    nodes: expect.arrayContaining([
      { name: "large", kind: "step", after: ["size"], case: { branch: "size", label: "big" } },
    ]),
  });
});

test("graph says why it cannot draw a workflow", async () => {
  const { folder } = samples;
  expect(await folder.error("graph", workflows, "--workflow", "echo")).toBe(
    '"echo" cannot be drawn: the steps of a function are known only as it runs.',
  );
  expect(await folder.error("graph", workflows, "--workflow", "sortin")).toMatch(
    /has no workflow "sortin"; did you mean "sorting"\?$/,
  );
});

test("doctor warns of old overrides without an end, and of limits that runs wait for although nothing has registered them", async () => {
  const folder = newFolder();
  const pawl = await connect(folder.url, { logger: silent });
  onTestFinished(() => pawl.close());
  const [one, two] = [limit("one", { concurrency: 1 }), limit("two", { concurrency: 1 })];
  const checksOf = async () =>
    (await folder.json("doctor")).checks.filter(({ name }: Check) => name === "limits") as Check[];
  expect(await checksOf()).toEqual([]);
  const limited = workflow("limited", { limits: [one, two] }, async () => {});
  await (await pawl.worker({ workflows: [limited] }).start()).stop();
  expect(await checksOf()).toEqual([{ name: "limits", verdict: "ok", text: "2, none is overridden" }]);
  await pawl.limits.override("one", { concurrency: 5 });
  await pawl.limits.override("two", { concurrency: 5, until: new Date("2099-01-01T00:00Z") });
  expect(await checksOf()).toEqual([{ name: "limits", verdict: "ok", text: "2, 2 of them overridden" }]);
  const { store } = pawl.internals;
  const override = { concurrency: 5, until: null, reason: null, by: null, at: Date.now() - 10 * 86_400_000 };
  await store.limits.override("one", override);
  const run = await pawl.start(limited);
  const runClass = runClassOf("limited", "", ["gone\t"], "");
  await store.limits.sort([{ runId: run.id, runClass, hasBegun: false }]);
  expect(await checksOf()).toEqual([
    { name: "limits", verdict: "warning", text: "runs wait for limits that no worker has registered: gone" },
    {
      name: "limits",
      verdict: "warning",
      text: "overridden without an end for more than a week: one (10 days old); run: pawl limits clear <name>",
    },
  ]);
});

test("doctor warns of schedules that are late by more than a minute, and of retired ones", async () => {
  const folder = newFolder();
  const minuteMs = 60_000;
  const now = Date.now();
  const pawl = await connect(folder.url, { logger: silent, clock: () => now - 10 * minuteMs });
  const timing = { at: [new Date(now - 5 * minuteMs)] };
  const declare = (...names: string[]) => {
    const schedules = names.map((name) => schedule(name, { workflow: "report", at: ["2100-01-01T00:00Z"] }));
    return pawl.worker({ workflows: [], schedules }).start();
  };
  await pawl.schedules.put("late", { workflow: "report", ...timing });
  await pawl.schedules.put("in_time", { workflow: "report", every: "1d", startAt: "2100-01-01T00:00Z" });
  await pawl.schedules.put("held", { workflow: "report", ...timing });
  await pawl.schedules.pause("held");
  const checksOf = async () =>
    (await folder.json("doctor")).checks.filter(({ name }: Check) => name === "schedules") as Check[];
  expect((await checksOf()).map(({ verdict, text }) => [verdict, text.replace(/\(.*\)/, "")])).toEqual([
    ["warning", "late: late ; no live worker that has them keeps up, see: pawl workers"],
  ]);
  await pawl.schedules.delete("late");
  expect(await checksOf()).toEqual([{ name: "schedules", verdict: "ok", text: "2, none is late or retired" }]);
  const old = await declare("kept", "dropped");
  await old.stop();
  await (await declare("kept")).stop();
  expect(await checksOf()).toEqual([
    {
      name: "schedules",
      verdict: "warning",
      text: "retired, because the code does not contain them any more: dropped; run: pawl schedules delete <name>",
    },
  ]);
  await pawl.close();
});
