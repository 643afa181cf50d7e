/** `start`, `signal`, `pause`, `resume`, `skip`, `cancel`: commands that change runs. */
import { connect, workflow } from "pawl";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/waiting.js";
import { errorIn, workflows } from "./command-line.js";
import { folderWithSampleRuns, type SampleRuns, silent, withWorker } from "./sample-runs.js";

let samples: SampleRuns;
beforeAll(async () => {
  samples = await folderWithSampleRuns();
});
afterAll(() => samples.folder.remove());

const statusOf = async (id: string): Promise<string> => (await samples.folder.json("show", id)).status;
/** Starts a run that no worker executes. */
const parked = async (...args: string[]): Promise<string> => (await samples.folder.json("start", ...args)).id;

test("start prints the id of the run and stores its options", async () => {
  const { folder } = samples;
  const options = [
    "--key",
    "k-1",
    "--hero",
    "User:7",
    "--delay",
    "2 days",
    "--priority",
    "-3",
    "--tag",
    "a",
    "--tag",
    "b",
  ];
  const text = await folder.text("start", "order", '{"sku": "B-2"}', ...options);
  const [, id] = /^Started order: ([0-9a-f-]{36})\n$/.exec(text) ?? [];
  const run = await folder.json("show", id as string);
  expect(run).toMatchObject({
    workflow: "order",
    status: "pending",
    input: { sku: "B-2" },
    hero: { type: "User", id: "7" },
    idempotencyKey: "k-1",
    priority: -3,
    tags: ["a", "b"],
  });
  expect(Date.parse(run.why.until) - Date.parse(run.createdAt)).toBe(2 * 86_400_000);
  const again = await folder.json("start", "order", '{"sku": "B-2"}', "--key", "k-1");
  expect(again).toMatchObject({ id, created: false });
  expect(await folder.text("start", "order", '{"sku": "B-2"}', "--key", "k-1")).toBe(
    `Started before, with this key: order ${id}\n`,
  );
});

test("start merges a debounced start with the one before it, and show says so", async () => {
  const { folder } = samples;
  const flags = ["--debounce", "d1", "--quiet", "1h", "--max", "2h", "--keep", "last"];
  const first = await folder.json("start", "order", '{"sku": "D-1"}', ...flags);
  expect(first).toMatchObject({ created: true, merged: false });
  expect(await folder.text("start", "order", '{"sku": "D-2"}', ...flags)).toBe(
    `Added to a run that has not begun: order ${first.id}\n`,
  );
  expect(await folder.json("show", first.id)).toMatchObject({
    input: { sku: "D-2" },
    gathered: { by: "debounce", key: "d1", starts: 2 },
    why: { because: "gathering" },
  });
  expect(await folder.text("show", first.id)).toContain("debounced, 2 starts with the key d1, the last");
});

test("start also reads its input from standard input", async () => {
  const { stdout } = await samples.folder.pawlWith({ input: '{"sku": "C-3"}' }, "start", "order", "-", "--json");
  expect(JSON.parse(stdout)).toMatchObject({ workflow: "order", input: { sku: "C-3" } });
});

test("start warns when no live worker has the workflow", async () => {
  const { code, stderr } = await samples.folder.pawl("start", "echo", "1");
  expect([code, stderr]).toEqual([
    0,
    'warning: Workflow "echo" was started, but no live worker has it; the run waits for one.\n',
  ]);
});

test("start --wait prints only the result, so that it can be piped", async () => {
  const { folder } = samples;
  await withWorker(folder, async () => {
    const { code, stdout, stderr } = await folder.pawl("start", "echo", '{"a": [1, 2]}', "--wait");
    expect([code, JSON.parse(stdout)]).toEqual([0, { a: [1, 2] }]);
    expect(stderr).toMatch(/^Started: [0-9a-f-]{36}\n$/);
    const asJson = await folder.json("start", "echo", "3", "--wait");
    expect(asJson).toMatchObject({ status: "completed", output: 3 });
  });
});

test("start --wait exits with an error when the run fails", async () => {
  const { folder } = samples;
  await withWorker(folder, async () => {
    const { code, stdout, stderr } = await folder.pawl("start", "declined", "--wait");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^Started: (\S+)\nRun \1 failed: the card was declined\n$/);
    const inJson = await folder.pawl("start", "declined", "--wait", "--json");
    expect(JSON.parse(inJson.stdout)).toMatchObject({ status: "failed", error: { message: "the card was declined" } });
    expect(errorIn(inJson)).toMatch(/^Run \S+ failed: the card was declined$/);
  });
});

test("start --wait exits with an error and the reason when the run is canceled", async () => {
  const { folder } = samples;
  const waiting = folder.begin(["start", "order", "{}", "--wait", "--tag", "unwanted"]);
  await waiting.until("Started: ");
  const [{ id }] = (await folder.json("runs", "--tag", "unwanted")).runs;
  await folder.text("cancel", id, "--reason", "ordered twice");
  const { code, stderr } = await waiting.exited;
  expect([code, stderr.trimEnd().split("\n").at(-1)]).toEqual([1, `Run ${id} was canceled: ordered twice`]);
});

test("start --wait gives up after its timeout, and the run continues", async () => {
  const { code, stdout, stderr } = await samples.folder.pawl("start", "order", "{}", "--wait", "--timeout", "10ms");
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/did not end within 10 ms\b/);
});

test("a bare number is a duration in milliseconds", async () => {
  const { folder } = samples;
  const { stderr } = await folder.pawl("start", "order", "{}", "--wait", "--timeout", "10");
  expect(stderr).toMatch(/did not end within 10 ms\b/);
  const run = await folder.json("show", await parked("echo", "1", "--delay", "3600000"));
  expect(Date.parse(run.why.until) - Date.parse(run.createdAt)).toBe(3_600_000);
  expect(await folder.text("prune", "--older-than", "86400000")).toBe("Nothing to delete.\n");
});

test("start checks all options before it starts anything", async () => {
  const { folder } = samples;
  const args = ["start", "order", "{}", "--wait", "--tag", "never"];
  expect(await folder.error(...args, "--timeout", "soon")).toMatch(/^The timeout "soon" is not a duration/);
  expect(await folder.json("runs", "--tag", "never")).toEqual({ runs: [], next: null, isCut: false });
});

test.each([
  [
    ["nobody_has_this"],
    'No worker has ever registered a workflow "nobody_has_this" in this database; run: pawl worker <file>',
  ],
  [["order", "{sku: 1}"], /^The input is not valid JSON \(.*\); quote it for the shell: '\{"a": 1\}'$/],
  [["order", "{}", "--priority", "high"], '--priority takes a whole number, not "high".'],
  [["order", "{}", "--delay", "soon"], /^The delay "soon" is not a duration/],
  [["order", "{}", "--hero", "42"], '--hero takes a type and an id, as in User:42, not "42".'],
])("start refuses %j", async (args, sentence) => {
  const complaint = await samples.folder.error("start", ...args);
  if (typeof sentence === "string") expect(complaint).toBe(sentence);
  else expect(complaint).toMatch(sentence);
});

test("start reports the refusals of the library: an idempotency key with another input, a hero that is busy", async () => {
  const { folder } = samples;
  await withWorker(folder, async () => {
    expect(await folder.error("start", "order", '{"sku": "other"}', "--key", "cart-77")).toContain(
      'was already started with the idempotency key "cart-77"',
    );
    expect(await folder.error("start", "Onboarding", "--hero", "User:42")).toContain(
      'User 42 already has an active run of workflow "Onboarding"',
    );
  });
});

test("signal wakes the run that waits for it, and a repeated key counts once", async () => {
  const { folder, ids } = samples;
  const text = await folder.text("signal", ids.order, "approved", '{"by": "finance"}', "--key", "w-9");
  expect(text).toBe(`Sent "approved" to run ${ids.order}.\n`);
  await folder.json("signal", ids.order, "approved", '{"by": "nobody"}', "--key", "w-9");
  const events = await folder.json("history", ids.order);
  expect(events.filter(({ type }: { type: string }) => type === "signal.received")).toHaveLength(1);
  const output = await withWorker(folder, (pawl) => pawl.run(ids.order).result());
  expect(output).toEqual({ shelf: "shelf of A-1", by: "finance" });
  expect(await folder.error("signal", ids.order, "approved")).toBe(
    `Run ${ids.order} is completed and cannot take the signal "approved".`,
  );
  expect(await folder.error("signal", ids.held, "go", "{")).toMatch(/^The payload is not valid JSON/);
});

test("signal names the signal that the run waits for when it is a different one", async () => {
  const { folder } = samples;
  const id = await withWorker(folder, async (pawl) => {
    const run = await pawl.workflow("order").trigger({ sku: "S-1" });
    await until(async () => (await run.status()) === "waiting");
    return run.id;
  });
  expect(await folder.pawl("signal", id, "aproved")).toEqual({
    code: 0,
    stdout: `Sent "aproved" to run ${id}.\n`,
    stderr: 'The run waits for "approved"; "aproved" is kept until the run asks for it.\n',
  });
  expect((await folder.pawl("signal", id, "approved")).stderr).toBe("");
  // This run waits for no signal, so any signal may simply be early.
  const early = await parked("echo", "1", "--delay", "1h");
  expect(await folder.pawl("signal", early, "anything")).toMatchObject({ code: 0, stderr: "" });
});

test("pause pauses a run and resume resumes it, and each prints the new status", async () => {
  const { folder } = samples;
  const id = await parked("echo", "1", "--delay", "1h");
  expect(await folder.text("pause", id, "--reason", "the bank is down")).toBe(`Run ${id} of echo is paused.\n`);
  expect(await folder.json("show", id)).toMatchObject({ status: "paused", pauseReason: "the bank is down" });
  expect(await folder.error("pause", id)).toContain("paused");
  expect(await folder.json("resume", id)).toMatchObject({ id, status: "pending", pauseReason: null });
  expect(await folder.error("resume", id)).toContain("not paused");
});

test("resume --output completes the step at which the run is stuck", async () => {
  const { folder, ids } = samples;
  expect(await folder.error("resume", ids.held, "--output", "1", "--at", "ask")).toBe(
    "Give --at alone: --output, --accept and --renamed are for a run that continues where it is.",
  );
  expect(await folder.error("resume", ids.held, "--output", "{")).toMatch(/^The output is not valid JSON/);
  await folder.text("resume", ids.held, "--output", '{"looked": true}');
  expect(await withWorker(folder, (pawl) => pawl.run(ids.held).result())).toEqual({ looked: true });
});

test("resume --renamed and --accept map changed code to the run, and are validated", async () => {
  const { folder } = samples;
  const id = await parked("echo", "1", "--delay", "1h");
  await folder.text("pause", id);
  expect(await folder.error("resume", id, "--renamed", "old")).toBe(
    '--renamed takes old=new, with a comma between several, not "old".',
  );
  await folder.text("resume", id, "--renamed", "old=new,a=b", "--accept", "c,d");
  expect((await folder.json("history", id)).at(-1)).toMatchObject({
    type: "run.resumed",
    data: { by: "operator", accept: ["c", "d"], renamed: { old: "new", a: "b" } },
  });
});

test("cancel --force ends a run immediately, and its history says so", async () => {
  const { folder } = samples;
  const id = await parked("echo", "1", "--delay", "1h");
  expect(await folder.text("cancel", id, "--force", "--reason", "stuck")).toBe(`Run ${id} of echo is canceled.\n`);
  expect(await folder.json("history", id)).toContainEqual(
    expect.objectContaining({ type: "run.cancel_requested", data: { reason: "stuck", force: true } }),
  );
});

test("resume --at moves a class run to a step, and skip skips its current step", async () => {
  const { folder, ids } = samples;
  await folder.text("pause", ids.onboarding);
  expect(await folder.text("resume", ids.onboarding, "--at", "welcome")).toMatch(/ of Onboarding is \w+\.\n$/);
  const events = await folder.json("history", ids.onboarding);
  expect(events.at(-1)).toMatchObject({ type: "run.resumed" });
  expect(events.some(({ type, data }: any) => type === "run.moved" && data.to === "welcome")).toBe(true);
  await withWorker(folder, async (pawl) => {
    await until(async () => {
      const { status, currentStep } = await pawl.run(ids.onboarding).get();
      return status === "waiting" && currentStep === 'say "hi"';
    });
    expect(await folder.text("skip", ids.onboarding)).toMatch(/^Run .* of Onboarding is \w+.*\.\n$/);
    await pawl.run(ids.onboarding).result();
  });
  expect(await folder.error("skip", ids.onboarding)).toContain("is completed and cannot take");
});

test("cancel ends a run with a stored reason, and a second cancel changes nothing", async () => {
  const { folder } = samples;
  const id = await parked("order", "{}");
  expect(await folder.text("cancel", id, "--reason", "ordered twice")).toBe(`Run ${id} of order is canceled.\n`);
  expect(await folder.text("show", id)).toMatch(/^canceled {2}ordered twice$/m);
  expect(await folder.json("cancel", id)).toMatchObject({ status: "canceled", error: { message: "ordered twice" } });
  expect(await folder.text("cancel", id)).toBe(`Run ${id} of order is canceled already; nothing was changed.\n`);
  expect(await statusOf(id)).toBe("canceled");
  expect(await folder.error("cancel", samples.ids.echo)).toContain("is completed and cannot take");
});

test("cancel says which steps are undone, which runs are also canceled, and when", async () => {
  const { folder } = samples;
  const child = workflow("child", async (ctx, _n: number) => void (await ctx.waitForSignal("never")));
  const trip = workflow("trip", async (ctx) => {
    await ctx.step("book flight", () => 1, { compensate: () => {} });
    await ctx.step("book hotel", () => 2, { compensate: () => {} });
    await ctx.map(child, [1, 2]);
  });
  const pawl = await connect(folder.url, { logger: silent });
  const worker = await pawl.worker({ workflows: [trip, child] }).start();
  const runs = [await pawl.start(trip), await pawl.start(trip)];
  await until(async () => (await pawl.runs({ workflow: child, status: "waiting" })).runs.length === 4);
  await until(async () => (await pawl.runs({ workflow: trip, status: "waiting" })).runs.length === 2);
  await worker.stop();
  await pawl.close();
  const [id, forced] = runs.map((run) => run.id) as [string, string];
  expect(await folder.text("cancel", id)).toMatch(
    new RegExp(
      `^Run ${id} of trip is (waiting|pending); it is canceled when a worker takes it; ` +
        "2 steps \\(book hotel, book flight\\) are undone first; 2 runs that it started are canceled, too\\.\\n$",
    ),
  );
  expect(await folder.text("cancel", forced, "--force")).toBe(
    `Run ${forced} of trip is canceled; 2 runs that it started are canceled, too; ` +
      "2 steps (book hotel, book flight) are not undone, as it was canceled by force.\n",
  );
});

test("a command for an executing run says that it takes effect after the current step", async () => {
  const { folder } = samples;
  const worker = folder.begin(["worker", workflows, "--json"]);
  await worker.until("worker.started");
  const id = await parked("endless");
  await until(async () => (await statusOf(id)) === "running");
  expect(await folder.text("pause", id)).toBe(
    `Run ${id} of endless is running; it pauses when the current step is done.\n`,
  );
  await worker.kill();
});
