/** What the logger receives about runs that need attention, and what workflow code logs with. */
import { job, PauseError, PermanentError, Workflow, workflow } from "pawl";
import { expect, test } from "vitest";
import { asDefinition } from "../../src/define/resolve.js";
import { silent, world } from "../support/virtual-worlds.js";

/** A logger that takes fields first and has child loggers, as pino does. */
function fieldsFirst(lines: Record<string, any>[] = [], bindings: object = {}) {
  const write = (level: string) => (fields: unknown, msg: unknown) =>
    void (typeof fields === "object"
      ? lines.push({ level, ...bindings, ...fields, msg })
      : lines.push({ level, ...bindings, msg: fields }));
  const child = (more: object): any => fieldsFirst(lines, { ...bindings, ...more });
  const levels = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  return { lines, ...levels, child, bindings: () => bindings } as any;
}

const declined = workflow("declined", async (ctx) => {
  await ctx.step("pay", () => {
    throw new PermanentError("the card was declined", { cause: new Error("51") });
  });
});

test("a failed run is logged as a warning with its reason and the step that threw it", async () => {
  const lines: unknown[][] = [];
  const w = await world("memory", "memory:", { ...silent, warn: (...args) => void lines.push(args) });
  const { settle } = await w.worker([declined]);
  const run = await w.pawl.start(declined);
  await settle();
  expect(lines).toEqual([
    [`Run ${run.id} (declined) failed at step "pay": the card was declined`, expect.any(PermanentError)],
  ]);
});

test("a failed child is not logged as a warning, because its parent decides what the failure means", async () => {
  const lines: unknown[] = [];
  const logger = {
    ...silent,
    warn: (text: unknown) => void lines.push(text),
    info: (text: unknown) => void lines.push(text),
  };
  const parent = workflow("parent", async (ctx) => ctx.run(declined).catch(() => "fine"));
  const w = await world("memory", "memory:", logger);
  const { settle } = await w.worker([parent, declined], {}, logger);
  const run = await w.pawl.start(parent);
  await settle();
  const { runs } = await w.pawl.runs({ parentId: run.id });
  expect(lines).toEqual([`Run ${runs[0]?.id} (declined) failed at step "pay": the card was declined`]);
  expect(await run.status()).toBe("completed");
});

test("pino receives the error, the run and the workflow of a failure and of every transition", async () => {
  const logger = fieldsFirst();
  const w = await world("memory", "memory:", logger);
  const { settle } = await w.worker([declined], {}, logger);
  const run = await w.pawl.start(declined);
  await settle();
  const about = { runId: run.id, workflow: "declined" };
  expect(logger.lines.find(({ level }: any) => level === "warn")).toMatchObject({
    ...about,
    step: "pay",
    err: expect.any(PermanentError),
  });
  expect(logger.lines).toContainEqual(
    expect.objectContaining({ ...about, level: "debug", event: "step.failed", step: "pay", attempt: 1 }),
  );
  expect(logger.lines).toContainEqual(
    expect.objectContaining({ ...about, level: "debug", step: "pay", attempt: 1, err: expect.any(PermanentError) }),
  );
  expect(logger.lines).toContainEqual(expect.objectContaining({ ...about, level: "debug", status: "failed" }));
});

test("a worker without workflows and jobs is logged as a warning", async () => {
  const lines: unknown[] = [];
  const logger = { ...silent, warn: (text: unknown) => void lines.push(text) };
  const w = await world("memory", "memory:", logger);
  await w.worker([], { name: "idle" });
  await w.worker([declined], { name: "busy" });
  await w.worker([], { name: "jobs", jobs: [job("Mail", () => {})] });
  expect(lines).toEqual([
    'Worker "idle" has neither workflows nor jobs, so it executes nothing: give them to worker({ workflows, jobs }).',
  ]);
});

test("a pause because of an error is logged as a warning; a pause by ctx.pause() or by an operator is not", async () => {
  const lines: [string, unknown][] = [];
  const logger = {
    ...silent,
    warn: (text: unknown) => void lines.push(["warn", text]),
    info: (text: unknown) => void lines.push(["info", text]),
  };
  class Broken extends Workflow {
    static {
      this.step("pay", () => Promise.reject(new Error("out of order")));
    }
  }
  const approval = workflow("approval", (ctx) => ctx.step("ask", () => Promise.reject(new PauseError("approve it"))));
  const waits = workflow("waits", async (ctx) => void (await ctx.waitForSignal("go")));
  const w = await world("memory", "memory:", logger);
  const { settle } = await w.worker([Broken, approval, waits], {}, logger);
  const broken = await w.pawl.start(Broken);
  await settle();
  const asked = await w.pawl.start(approval);
  await settle();
  const waiting = await w.pawl.start(waits);
  await settle();
  await waiting.pause("lunch");
  expect(lines).toEqual([
    ["warn", expect.stringMatching(new RegExp(`^Run ${broken.id} \\(Broken\\) is paused: .*out of order`))],
    ["info", expect.stringMatching(new RegExp(`^Run ${asked.id} \\(approval\\) is paused: .*approve it`))],
    ["info", `Run ${waiting.id} (waits) is paused: lunch`],
  ]);
});

test("ctx.log is bound to the run, and the logger of a step to the step", async () => {
  const logger = fieldsFirst();
  const talks = workflow("talks", async (ctx) => {
    ctx.log.info("begun");
    await ctx.step("say", ({ log }) => log.warn("no stock", new Error("A-1")));
  });
  class Talks extends Workflow {
    static {
      this.step("first", (w) => w.log.info("in a class"));
    }
  }
  const w = await world("memory", "memory:", logger);
  const { settle } = await w.worker([talks, Talks], {}, logger);
  const run = await w.pawl.start(talks);
  const other = await w.pawl.start(Talks);
  await settle();
  const said = logger.lines.filter(({ msg }: any) => ["begun", "no stock", "in a class"].includes(msg));
  expect(said).toEqual([
    { level: "info", runId: run.id, workflow: "talks", msg: "begun" },
    {
      level: "warn",
      runId: run.id,
      workflow: "talks",
      step: "say",
      attempt: 1,
      err: expect.any(Error),
      msg: "no stock",
    },
    { level: "info", runId: other.id, workflow: "Talks", step: "first", attempt: 1, msg: "in a class" },
  ]);
});

test("a class with a minified name is warned about once; a class with an explicit name is not", async () => {
  const warnings: unknown[] = [];
  const w = await world("memory", "memory:", { ...silent, warn: (text) => void warnings.push(text) });
  const named = (name: string, options: object = {}) => {
    const Made = class extends Workflow {};
    Object.defineProperty(Made, "name", { value: name });
    Made.options(options);
    return Made;
  };
  const [short, bundled] = [named("t"), named("_Onboarding")];
  await w.pawl.register(
    [short, bundled, named("Order"), named("x", { name: "Ok" }), named("y", { name: "Go" })].map((one) =>
      asDefinition(one),
    ),
  );
  await w.pawl.start(short);
  expect(warnings).toEqual([
    expect.stringMatching(
      /^The workflow class "t" has a name that a bundler or minifier seems to have made\. .*--keep-names/,
    ),
    expect.stringContaining('this.options({ name: "Onboarding" })'),
    expect.stringContaining("no live worker has it"),
  ]);
});
