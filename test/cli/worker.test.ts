/** `worker` and `dev`: what they execute, what they print, and how they stop. */

import { connect } from "pawl";
import { expect, test } from "vitest";
import { until } from "../support/waiting.js";
import { type Answer, type CliProcess, newFolder, workflows } from "./command-line.js";
import { silent } from "./sample-runs.js";

const eventsOf = ({ stdout }: { readonly stdout: string }): any[] =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

/** Other processes see the end of a run a moment before its worker has released it. */
const withoutStoppingLine = (stderr: string) => stderr.replace(/^Stopping: \d+ active runs? may finish.*\n/m, "");

const untilReady = async (worker: CliProcess) => {
  await worker.until("serves");
  return worker;
};

test("a worker prints what it serves and a line per ended run, and exits when it receives SIGINT", async () => {
  const folder = newFolder();
  const worker = await untilReady(folder.begin(["worker", workflows, "--name", "w-1"]));
  const { id } = await folder.json("start", "echo", "1", "--wait");
  const { stdout } = await folder.pawl("start", "declined", "--wait", "--json");
  const declined = JSON.parse(stdout).id;
  const { code, stdout: said, stderr } = await worker.stop();
  expect([code, withoutStoppingLine(stderr)]).toEqual([
    0,
    `warning: Run ${declined} (declined) failed at step "charge": the card was declined\n`,
  ]);
  expect(said.split("\n").map((line) => line.replace(/ +\d+m?s$/, ""))).toEqual([
    "Worker w-1 serves Onboarding, declined, echo, endless, flaky, held, order, sorting on sqlite ./pawl.db.",
    `completed    echo ${id}`,
    `step failed  declined ${declined}  charge: the card was declined`,
    `failed       declined ${declined}`,
    "Worker w-1 has stopped.",
    "",
  ]);
});

test("a worker with --json prints a line per event", async () => {
  const folder = newFolder();
  const worker = folder.begin(["worker", workflows, "--json", "--name", "w-1"]);
  await worker.until("worker.started");
  await folder.json("start", "echo", "1", "--wait");
  await folder.json("start", "flaky", "--wait");
  const events = eventsOf(await worker.stop());
  expect(events).toMatchObject([
    { event: "worker.started", name: "w-1", database: "sqlite ./pawl.db", workflows: expect.arrayContaining(["echo"]) },
    { event: "run.ended", workflow: "echo", status: "completed", ms: expect.any(Number) },
    { event: "step.failed", workflow: "flaky", step: "call", attempt: 1, error: { message: "the line is busy" } },
    { event: "run.ended", workflow: "flaky", status: "completed" },
    { event: "worker.stopped", name: "w-1", signal: "SIGINT", ended: { completed: 2, failed: 0, canceled: 0 } },
  ]);
});

test("a worker with --quiet prints no lines about runs and steps", async () => {
  const folder = newFolder();
  const worker = await untilReady(folder.begin(["worker", workflows, "--quiet"]));
  await folder.json("start", "flaky", "--wait");
  const { stdout } = await worker.stop();
  expect(
    stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.replace(/^Worker \S+/, "Worker")),
  ).toEqual([expect.stringMatching(/^Worker serves/), "Worker has stopped."]);
});

test("SIGTERM lets the current step finish; a second SIGTERM ends the worker immediately and other workers take over", async () => {
  const folder = newFolder();
  const worker = await untilReady(folder.begin(["worker", workflows, "--name", "first"]));
  const { id } = await folder.json("start", "endless");
  await until(async () => (await folder.json("show", id)).status === "running");
  worker.signal("SIGTERM");
  await worker.until("Stopping: 1 active run may finish. Press Ctrl-C again to exit at once.");
  // A user repeats the signal until the process is gone. Signals right after the first one count as the same.
  let answer: Answer | null = null;
  void worker.exited.then((one) => {
    answer = one;
  });
  await until(async () => {
    worker.signal("SIGTERM");
    return answer !== null;
  });
  const { code, stderr } = await worker.exited;
  expect(code).toBe(1);
  expect(stderr).toContain("Exited at once; other workers take over its runs.");
});

test("two signals at the same moment, as `timeout` sends them, count as one", async () => {
  const folder = newFolder();
  folder.write("pawl.config.json", '{ "grace": "100ms" }');
  const worker = await untilReady(folder.begin(["worker", workflows]));
  const { id } = await folder.json("start", "endless");
  await until(async () => (await folder.json("show", id)).status === "running");
  worker.signal("SIGTERM");
  worker.signal("SIGINT");
  const { code, stdout, stderr } = await worker.exited;
  expect([code, stderr.includes("Exited at once")]).toEqual([0, false]);
  expect(stdout).toContain("has stopped.");
});

test("a worker whose database is unreachable exits, so that its supervisor can restart it", async () => {
  const url = "postgres://nobody@127.0.0.1:1/none";
  const { code, stdout, stderr } = await newFolder().pawl("worker", workflows, "--url", url);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr.trimEnd().split("\n").at(-1)).toMatch(/^PostgreSQL: .*ECONNREFUSED/);
});

test("a worker with --queue executes only those queues", async () => {
  const folder = newFolder();
  const worker = await untilReady(folder.begin(["worker", workflows, "--queue", "echo", "--queue", "order"]));
  const [record] = await folder.json("workers");
  expect(record.workflows.map(({ name }: { name: string }) => name)).toEqual(["echo", "order"]);
  await worker.stop();
});

test.each([
  [["--concurrency", "lots"], '--concurrency takes a whole number, not "lots".'],
  [["--concurrency", "0"], "A worker's concurrency is a whole number above 0, not 0."],
  [["--queue", ""], 'The queue name "" must not be empty; choose another.'],
])("a worker refuses %j", async (args, sentence) => {
  expect(await newFolder().error("worker", workflows, ...args)).toBe(sentence);
});

test("two workflows with the same name are refused", async () => {
  const folder = newFolder();
  for (const name of ["a.ts", "b.ts"])
    folder.write(name, 'import { workflow } from "pawl";\nexport const same = workflow("same", async () => 1);');
  expect(await folder.error("worker", "a.ts", "b.ts")).toMatch(/^Two different workflows are called "same"/);
});

test("log messages of workflows go to stderr", async () => {
  const folder = newFolder();
  folder.write(
    "a.ts",
    `import { workflow } from "pawl";
     export const chatty = workflow("chatty", async (ctx) => {
       ctx.log.debug("too much");
       ctx.log.info("hello", { a: 1 });
       ctx.log.warn("careful", new Error("hot"));
     });`,
  );
  const worker = folder.begin(["worker", "a.ts", "--json"]);
  await worker.until("worker.started");
  await folder.json("start", "chatty", "--wait");
  const { stdout, stderr } = await worker.stop();
  expect(withoutStoppingLine(stderr)).toBe("hello { a: 1 }\nwarning: careful hot\n");
  expect(eventsOf({ stdout }).map(({ event }) => event)).toEqual(["worker.started", "run.ended", "worker.stopped"]);
});

test("a worker exits although a workflow file has left a timer running", async () => {
  const folder = newFolder();
  folder.write(
    "a.mjs",
    `import { workflow } from "pawl";
     setInterval(() => {}, 1_000);
     export const ticking = workflow("ticking", async () => 1);`,
  );
  const worker = await untilReady(folder.begin(["worker", "a.mjs"]));
  expect((await worker.stop()).code).toBe(0);
});

test("a worker continues when its stdout is closed", async () => {
  const folder = newFolder();
  const worker = await untilReady(folder.begin(["worker", workflows]));
  worker.stopReading();
  for (const input of ["1", "2"])
    expect((await folder.json("start", "echo", input, "--wait")).status).toBe("completed");
  const { code, stderr } = await worker.stop();
  expect([code, withoutStoppingLine(stderr)]).toEqual([0, ""]);
});

test("dev finds workflows.ts, creates a database file, and prints how to start a run", async () => {
  const folder = newFolder();
  folder.write(
    "src/workflows.ts",
    'import { workflow } from "pawl";\nexport const hi = workflow("hi", async () => "hi");',
  );
  const dev = await untilReady(folder.begin(["dev"]));
  await dev.until("Start a run from another terminal: pawl start <workflow> '<json>'. Ctrl-C stops.");
  expect(folder.has("pawl.db")).toBe(true);
  expect((await folder.json("start", "hi", "--wait")).output).toBe("hi");
  const { code, stdout } = await dev.stop();
  expect(code).toBe(0);
  expect(stdout).toMatch(/^completed +hi [0-9a-f-]{36} +\d+ms$/m);
});

const workflowReturning = (text: string, more = "") =>
  `import { workflow } from "pawl";\n${more}export const hi = workflow("hi", async (ctx) => ctx.step("say", () => ${text}));\n`;

test("dev restarts its worker when a file of its code changes, including imported files", async () => {
  const folder = newFolder();
  const said = async () => (await folder.json("start", "hi", "--wait")).output;
  folder.write("words.ts", 'export const word: string = "one";');
  folder.write("workflows.ts", workflowReturning("word", 'import { word } from "./words.js";\n'));
  const dev = await untilReady(folder.begin(["dev", "--name", "first"]));
  expect(await said()).toBe("one");
  folder.write("words.ts", 'export const word: string = "two";');
  await dev.until("Changed: words.ts");
  await until(async () => (await said()) === "two");
  folder.write("workflows.ts", `${workflowReturning('"three"')}export const more = workflow("more", async () => 1);\n`);
  await dev.until("serves hi, more");
  expect(await said()).toBe("three");
  const { code, stdout } = await dev.stop();
  expect(code).toBe(0);
  expect(stdout.match(/has stopped\./g)).toHaveLength(3);
});

test("dev keeps its worker while the new code cannot be loaded, and restarts it after the next change that loads", async () => {
  const folder = newFolder();
  folder.write("workflows.ts", workflowReturning('"one"'));
  const dev = await untilReady(folder.begin(["dev"]));
  folder.write("workflows.ts", workflowReturning('"two" +'));
  await dev.until("The worker keeps the code that it has until a file changes.");
  expect((await folder.json("start", "hi", "--wait")).output).toBe("one");
  folder.write("workflows.ts", `${workflowReturning('"three"')}export const more = workflow("more", async () => 1);\n`);
  await dev.until("serves hi, more");
  expect((await folder.json("start", "hi", "--wait")).output).toBe("three");
  const { code, stderr } = await dev.stop();
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^workflows\.ts cannot be loaded: .*workflows\.ts:\d/m)]);
});

test("dev lets the current step finish before the new code starts", async () => {
  const folder = newFolder();
  const slow = (text: string) =>
    `import { existsSync } from "node:fs";
     import { workflow } from "pawl";
     export const hi = workflow("hi", async (ctx) => {
       await ctx.step("wait", async () => {
         while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
       });
       return ctx.step("say", () => "${text}");
     });`;
  folder.write("workflows.ts", slow("one"));
  const dev = await untilReady(folder.begin(["dev"]));
  const { id } = await folder.json("start", "hi");
  await until(async () => (await folder.json("show", id)).status === "running");
  folder.write("workflows.ts", slow("two"));
  await dev.until("Stopping: 1 active run may finish.");
  folder.write("go", "");
  await until(async () => (await folder.json("show", id)).status === "completed");
  const run = await folder.json("show", id);
  expect(run.executions.filter(({ step }: { step: string }) => step === "wait")).toHaveLength(1);
  await dev.stop();
});

test("dev exits with the reason when it cannot start, and its worker exits with it", async () => {
  const folder = newFolder();
  folder.write("workflows.ts", "export const = 1;");
  const broken = await folder.begin(["dev"]).exited;
  expect(broken.code).toBe(1);
  expect(broken.stderr).toMatch(/^workflows\.ts cannot be loaded: /);
  folder.write("workflows.ts", workflowReturning('"one"'));
  const away = await folder.begin(["dev", "--url", "postgres://nobody@127.0.0.1:1/none"]).exited;
  expect(away.code).toBe(1);
  expect(away.stderr).toMatch(/ECONNREFUSED/);
  const dev = await untilReady(folder.begin(["dev"]));
  await dev.kill();
  await until(async () => (await folder.json("workers")).every(({ live }: { live: boolean }) => !live));
});

const scheduledFile = `
  import { schedule, workflow } from "pawl";
  export const report = workflow("report", async (ctx) => ctx.schedule?.name);
  export const nightly = schedule("nightly", { workflow: report, cron: "30 2 * * *", timeZone: "Europe/Berlin" });
  export const others = [schedule("hourly", { workflow: report, every: "1h" })];
`;
const schedulesOf = async (url: string) => {
  const pawl = await connect(url, { logger: silent });
  const { schedules } = await pawl.schedules.list();
  await pawl.close();
  return schedules.map(({ name, app, status }) => `${name} ${app} ${status}`);
};

test("a worker declares the exported schedules, and says how many", async () => {
  const folder = newFolder();
  folder.write("a.ts", scheduledFile);
  const worker = folder.begin(["worker", "a.ts", "--name", "w-1"]);
  await worker.until("Worker w-1 serves report and 2 schedules on sqlite ./pawl.db.");
  expect(await schedulesOf(folder.url)).toEqual(["hourly default active", "nightly default active"]);
  await worker.stop();

  // A worker of files without schedules declares none, and retires none.
  folder.write("b.ts", 'import { workflow } from "pawl";\nexport const other = workflow("other", async () => 1);');
  const without = folder.begin(["worker", "b.ts", "--json"]);
  await without.until("worker.started");
  expect(eventsOf(await without.stop())[0]).toMatchObject({ workflows: ["other"], schedules: [] });
  expect(await schedulesOf(folder.url)).toEqual(["hourly default active", "nightly default active"]);
});

test.each([
  ["--app", { args: ["--app", "billing"], config: '{ "app": "shop" }' }, "billing"],
  ["the configuration file", { args: [], config: '{ "app": "shop" }' }, "shop"],
])("%s names the application that owns the schedules", async (_, { args, config }, app) => {
  const folder = newFolder();
  folder.write("a.ts", scheduledFile);
  folder.write("pawl.config.json", config);
  const worker = folder.begin(["worker", "a.ts", "--json", ...args]);
  await worker.until("worker.started");
  const [started] = eventsOf(worker);
  expect(started).toMatchObject({ workflows: ["report"], schedules: ["hourly", "nightly"] });
  expect(await schedulesOf(folder.url)).toEqual([`hourly ${app} active`, `nightly ${app} active`]);
  await worker.stop();
});

test("a file may export schedules alone, and two schedules of one name are refused", async () => {
  const folder = newFolder();
  const text = (every: string) =>
    `import { schedule } from "pawl";\nexport const one = schedule("one", { workflow: "elsewhere", every: "${every}" });`;
  folder.write("a.ts", text("1h"));
  folder.write("b.ts", text("2h"));
  const worker = folder.begin(["worker", "a.ts", "--name", "w-1"]);
  await worker.until("Worker w-1 serves 1 schedule on sqlite ./pawl.db.");
  await worker.stop();
  expect(await folder.error("worker", "a.ts", "b.ts")).toBe(
    'Two different schedules are called "one"; give one another name.',
  );
});
