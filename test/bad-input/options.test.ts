/**
 * JavaScript does not notice a misspelt option, and without its idempotency key a customer is charged twice. Pawl
 * refuses unknown options.
 */
import { readFileSync } from "node:fs";
import { connect, graph, job, limit, type Pawl, schedule, step, Workflow, type WorkflowContext, workflow } from "pawl";
import { httpHandler } from "pawl/http";
import { measureRuns, traceRuns } from "pawl/otel";
import { prometheus, servePrometheus } from "pawl/prometheus";
import { crashTest, type TestPawl, testPawl } from "pawl/testing";
import { expect, test } from "vitest";
import { start } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

interface World {
  readonly t: TestPawl;
  readonly pawl: Pawl;
  /** Makes the call inside a workflow and throws what it throws. */
  inside(call: (ctx: WorkflowContext<void>) => unknown): Promise<void>;
  /** Makes the call inside a resumable step and throws what it throws. */
  iterating(call: (iter: any) => unknown): Promise<void>;
}

const charge = workflow("charge", async (_ctx, _input: object) => {});
const wrong = (options: object) => options as never;

/** Each public function that takes options, called with an option that does not exist. */
const calls: Readonly<
  Record<string, readonly [call: (world: World) => unknown, said: string, alternatives?: Record<string, unknown>]>
> = {
  connect: [
    () => connect("memory:", wrong({ retntion: "1 day" })),
    'connect() has no option "retntion"; did you mean "retention"? Its options are ',
  ],
  worker: [
    ({ pawl }) => pawl.worker(wrong({ workflows: [], concurency: 1 })),
    'A worker has no option "concurency"; did you mean "concurrency"? Its options are workflows, jobs, ',
  ],
  start: [
    ({ pawl }) => pawl.start(charge, {}, wrong({ idempotencykey: "k" })),
    'start("charge") has no option "idempotencykey"; did you mean "idempotencyKey"? Its options are ',
  ],
  startMany: [
    ({ pawl }) => pawl.startMany(charge, [{}], wrong({ idempotencyKey: "k" })),
    'startMany("charge") has no option "idempotencyKey"; its options are ',
  ],
  trigger: [
    ({ pawl }) => pawl.workflow("charge").trigger({}, wrong({ herro: 1 })),
    'trigger() of "charge" has no option "herro"; did you mean "hero"? Its options are ',
  ],
  createWorkflow: [
    ({ pawl }) => pawl.createWorkflow("charge", wrong({ queu: "mail" })),
    'createWorkflow("charge") has no option "queu"; did you mean "queue"? Its only option is queue.',
  ],
  build: [
    ({ pawl }) => pawl.build("g", (g) => g.node("a", { job: "A" }), wrong({ onNodeFailur: "continue" })),
    'build("g") has no option "onNodeFailur"; did you mean "onNodeFailure"? Its options are ',
  ],
  node: [
    ({ pawl }) => pawl.build("g", (g) => g.node("a", wrong({ job: "A", dependOn: null }))),
    'Node "a" has no option "dependOn"; did you mean "dependsOn"? Its options are job, args, dependsOn.',
  ],
  fanOut: [
    ({ pawl }) => pawl.build("g", (g) => g.fanOut([1], wrong({ job: "A", name: String, arguments: 1 }))),
    'fanOut() has no option "arguments"; its options are name, job, args, dependsOn.',
  ],
  runs: [
    ({ pawl }) => pawl.runs(wrong({ state: "failed" })),
    'runs() has no filter "state"; did you mean "status"? Its filters are workflow, status, ',
  ],
  metrics: [
    ({ pawl }) => pawl.metrics("charge", wrong({ from: 1 })),
    'metrics() has no option "from"; its only option is since.',
  ],
  schedule: [
    () => schedule("nightly", wrong({ workflow: charge, crn: "0 2 * * *" })),
    'Schedule "nightly" has no option "crn"; did you mean "cron"? Its options are workflow, input, cron, ',
  ],
  limit: [
    () => limit("per_tenant", wrong({ concurency: 2 })),
    'Limit "per_tenant" has no option "concurency"; did you mean "concurrency"? Its options are key, concurrency, rate, ',
  ],
  override: [
    ({ pawl }) => pawl.limits.override("per_tenant", wrong({ concurency: 2 })),
    'limits.override() has no option "concurency"; did you mean "concurrency"? Its options are concurrency, rate, until, reason, by.',
  ],
  put: [
    ({ pawl }) => pawl.schedules.put("nightly", wrong({ workflow: "charge", evry: "1h" })),
    'Schedule "nightly" has no option "evry"; did you mean "every"? Its options are workflow, input, cron, ',
  ],
  list: [
    ({ pawl }) => pawl.schedules.list(wrong({ application: "shop" })),
    'schedules.list() has no option "application"; its options are app, limit, cursor.',
  ],
  backfill: [
    ({ pawl }) => pawl.schedules.backfill("nightly", wrong({ from: 0, dryrun: true })),
    'schedules.backfill() has no option "dryrun"; did you mean "dryRun"? Its options are by, reason, from, to, dryRun.',
  ],
  occurrences: [
    ({ pawl }) => pawl.schedules.occurrences("nightly", wrong({ limits: 5 })),
    'schedules.occurrences() has no option "limits"; did you mean "limit"? Its options are limit, cursor.',
  ],
  get: [
    ({ pawl }) => pawl.limits.get("api", wrong({ kye: "a" })),
    'limits.get() has no option "kye"; did you mean "key"? Its options are key, limit, cursor.',
  ],
  prune: [
    ({ pawl }) => pawl.prune(wrong({ olderThan: 0, worklfow: "other" })),
    'prune() has no option "worklfow"; did you mean "workflow"? Its options are olderThan, workflow, ',
  ],
  result: [
    async ({ pawl }) => (await pawl.start(charge, {})).result(wrong({ timout: 1 })),
    'result() has no option "timout"; did you mean "timeout"? Its options are timeout, signal.',
  ],
  signal: [
    async ({ pawl }) => (await pawl.start(charge, {})).signal("paid", 1, wrong({ idempotencyKey: "k" })),
    'signal() has no option "idempotencyKey"; its ',
  ],
  resume: [
    async ({ pawl }) => (await pawl.start(charge, {})).resume(wrong({ ouput: 1 })),
    'resume() has no option "ouput"; did you mean "output"? Its options are output, accept, renamed, by, reason, ifLastEvent.',
  ],
  cancel: [
    async ({ pawl }) => (await pawl.start(charge, {})).cancel("why", wrong({ forced: true })),
    'cancel() has no option "forced"; did you mean "force"? Its options are force, by, ifLastEvent.',
  ],
  pause: [
    async ({ pawl }) => (await pawl.start(charge, {})).pause("why", wrong({ user: "ada" })),
    'pause() has no option "user"; its options are by, ifLastEvent.',
  ],
  resumeAt: [
    async ({ pawl }) => (await pawl.start(charge, {})).resumeAt("pay", wrong({ raeson: "why" })),
    'resumeAt() has no option "raeson"; did you mean "reason"? Its options are by, reason, ifLastEvent.',
  ],
  skip: [
    async ({ pawl }) => (await pawl.start(charge, {})).skip(wrong({ ifLastEvnt: 1 })),
    'skip() has no option "ifLastEvnt"; did you mean "ifLastEvent"? Its options are by, reason, ifLastEvent.',
  ],
  retry: [
    async ({ pawl }) => (await pawl.start(charge, {})).retry(wrong({ ifLastEvent: 1 })),
    'retry() has no option "ifLastEvent"; its options are by, reason.',
  ],
  importDag: [
    async ({ pawl }) => {
      const built = await pawl.build("import", (g) => void g.node("a", { job: "A" }), { start: false });
      await built.importDag(await built.exportDag(), wrong({ user: "ada" }));
    },
    'importDag() has no option "user"; its options are by, reason, ifLastEvent.',
  ],
  triggerMany: [
    async ({ pawl }) => {
      await pawl.createWorkflow("charge");
      await pawl.workflow("charge").triggerMany([{}], wrong({ idempotencyKey: "k" }));
    },
    'triggerMany() of "charge" has no option "idempotencyKey"; its options are ',
  ],
  figures: [
    ({ pawl }) => pawl.figures(wrong({ since: 1 })),
    'figures() has no option "since"; its options are from, to, workflow.',
  ],
  pauseQueue: [
    ({ pawl }) => pawl.pauseQueue("charge", "why", wrong({ user: "ada" })),
    'pauseQueue() has no option "user"; its only option is by.',
  ],
  httpHandler: [
    ({ pawl }) => httpHandler(pawl, wrong({ authorise: () => null })),
    'httpHandler() has no option "authorise"; did you mean "authorize"? Its options are basePath, authorize, ',
  ],
  history: [
    async ({ pawl }) => (await pawl.start(charge, {})).history(wrong({ from: 1 })),
    'history() has no option "from"; its options are after, limit.',
  ],
  workflow: [
    () => workflow("x", wrong({ timout: 1 }), async () => {}),
    'Workflow "x" has no option "timout"; did you mean "timeout"? Its options are ',
  ],
  graph: [
    () => graph("x", [step("a", () => 1)], wrong({ removedStep: [] })),
    'Graph "x" has no option "removedStep"; did you mean "removedSteps"? Its options are ',
  ],
  job: [
    () => job("J", () => 1, wrong({ retires: {} })),
    'Job "J" has no option "retires"; its options are queue, priority, onError, tags, retry, timeout.',
  ],
  options: [
    () =>
      class extends Workflow {
        static {
          this.options(wrong({ onExeption: "pause" }));
        }
      },
    ' has no option "onExeption"; did you mean "onException"? Its options are ',
  ],
  resumableStep: [
    () =>
      class Sending extends Workflow {
        static {
          this.resumableStep("send", wrong({ maxRunTime: "1m" }), () => {});
        }
      },
    ' has no option "maxRunTime"; did you mean "maxRuntime"? Its options are ',
  ],
  task: [
    () =>
      class Sending extends Workflow {
        static {
          this.task("send", wrong({ dependOn: "x" }), () => {});
        }
      },
    ' has no option "dependOn"; did you mean "dependsOn"? Its options are ',
  ],
  // Of a graph, of a class, and on `ctx`.
  step: [
    () => step("a", () => 1, wrong({ timout: 1 })),
    'Step "a" has no option "timout"; did you mean "timeout"? Its options are retry, timeout, ',
    {
      "of a class": [
        () =>
          class Sending extends Workflow {
            static {
              this.step("send", wrong({ skipif: true }), () => {});
            }
          },
        ' has no option "skipif"; did you mean "skipIf"? Its options are ',
      ],
      "its rule for exceptions": [
        () =>
          class Sending extends Workflow {
            static {
              this.step("send", { onException: wrong({ actoin: "skip" }) }, () => {});
            }
          },
        'has no option "actoin"; did you mean "action"? Its options are on, action, wait, ',
      ],
      "under ctx": [
        ({ inside }: World) => inside((ctx) => ctx.step("pay", () => 1, wrong({ retires: {} }))),
        'Step "pay" has no option "retires"; its options are retry, timeout, ',
      ],
      "its retry": [
        ({ inside }: World) => inside((ctx) => ctx.step("pay", () => 1, { retry: wrong({ attemps: 2 }) })),
        'retry has no option "attemps"; did you mean "attempts"? Its options are attempts, ',
      ],
    },
  ],
  transaction: [
    ({ inside }) => inside((ctx) => ctx.transaction("pay", () => 1, wrong({ compenste: 1 }))),
    'Step "pay" has no option "compenste"; did you mean "compensate"? Its options are ',
  ],
  sleep: [
    ({ inside }) => inside((ctx) => ctx.sleep("nap", "1s", wrong({ add: true }))),
    'ctx.sleep("nap") has no option "add"; did you mean "added"? Its only option is added.',
  ],
  sleepUntil: [
    ({ inside }) => inside((ctx) => ctx.sleepUntil("nap", 1, wrong({ add: true }))),
    'ctx.sleepUntil("nap") has no option "add"; did you mean "added"? Its only option is added.',
  ],
  waitForSignal: [
    ({ inside }) => inside((ctx) => ctx.waitForSignal("paid", wrong({ timeOut: 1 }))),
    'A wait for "paid" has no option "timeOut"; did you mean "timeout"? Its options are timeout, added.',
  ],
  waitForAny: [
    ({ inside }) => inside((ctx) => ctx.waitForAny(["paid", "late"], wrong({ timeOut: 1 }))),
    'A wait for "paid, late" has no option "timeOut"; did you mean "timeout"? Its options are timeout, added.',
  ],
  waitForAll: [
    ({ inside }) => inside((ctx) => ctx.waitForAll(["paid", "sent"], wrong({ timeOut: 1 }))),
    'A wait for "paid, sent" has no option "timeOut"; did you mean "timeout"? Its options are timeout, added.',
  ],
  run: [
    ({ inside }) => inside((ctx) => ctx.run(charge, {}, wrong({ prio: 1 }))),
    'Child "charge" has no option "prio"; did you mean "priority"? Its options are ',
  ],
  map: [
    ({ inside }) => inside((ctx) => ctx.map(charge, [{}], wrong({ concurency: 1 }))),
    'ctx.map("charge") has no option "concurency"; did you mean "concurrency"? Its options are ',
  ],
  branch: [
    ({ inside }) => inside((ctx) => ctx.branch("b", () => "x", { x: () => 1 }, wrong({ add: true }))),
    'ctx.branch("b") has no option "add"; did you mean "added"? Its only option is added.',
  ],
  reattempt: [
    ({ inside }) => inside((ctx) => ctx.reattempt(wrong({ waits: 1 }))),
    'reattempt() has no option "waits"; did you mean "wait"? Its options are wait, rewind.',
  ],
  suspend: [
    ({ inside }) => inside((ctx) => ctx.suspend(wrong({ waits: 1 }))),
    'suspend() has no option "waits"; did you mean "wait"? Its only option is wait.',
  ],
  advance: [
    ({ iterating }) => iterating((iter) => iter.advance({ form: 1 })),
    'advance() has no option "form"; did you mean "from"? Its only option is from.',
  ],
  skipTo: [
    ({ iterating }) => iterating((iter) => iter.skipTo(1, { waits: 1 })),
    'skipTo() has no option "waits"; did you mean "wait"? Its only option is wait.',
  ],
  records: [
    ({ iterating }) => iterating((iter) => iter.records({ fetch: () => [], key: "id", sizes: 1 }, () => {})),
    'records() has no option "sizes"; did you mean "size"? Its options are fetch, key, size.',
  ],
  batches: [
    ({ iterating }) => iterating((iter) => iter.batches({ fetch: () => [], key: "id", sizes: 1 }, () => {})),
    'batches() has no option "sizes"; did you mean "size"? Its options are fetch, key, size.',
  ],
  testPawl: [
    () => testPawl(wrong({ workflow: [] })),
    'testPawl() has no option "workflow"; did you mean "workflows"? Its options are ',
  ],
  crashTest: [
    () => crashTest(charge, {}, wrong({ seeds: 1 })),
    'crashTest() has no option "seeds"; did you mean "seed"? Its options are ',
    {
      "of testPawl": [
        ({ t }: World) => t.crashTest(charge, {}, wrong({ seeds: 1 })),
        'crashTest() has no option "seeds"; did you mean "seed"? Its options are ',
      ],
    },
  ],
  speedrun: [
    async ({ t }) => t.speedrun(await t.pawl.start(charge, {}), wrong({ maxExecution: 1 })),
    'speedrun() has no option "maxExecution"; did you mean "maxExecutions"? Its only option is maxExecutions.',
  ],
  speedrunCurrentStep: [
    async ({ t }) => t.speedrunCurrentStep(await t.pawl.start(charge, {}), wrong({ maxExecution: 1 })),
    'speedrunCurrentStep() has no option "maxExecution"; did you mean "maxExecutions"? Its only option is ',
  ],
  measureRuns: [
    ({ pawl }) => measureRuns(pawl, wrong({ provider: 1 })),
    'measureRuns() has no option "provider"; its options are meterProvider, logger.',
  ],
  traceRuns: [
    ({ pawl }) => traceRuns(pawl, wrong({ traceProvider: 1 })),
    'traceRuns() has no option "traceProvider"; did you mean "tracerProvider"? Its options are ',
  ],
  prometheus: [
    ({ pawl }) => prometheus(pawl, wrong({ log: 1 })),
    'prometheus() has no option "log"; did you mean "logger"? Its only option is logger.',
  ],
  servePrometheus: [
    ({ pawl }) => servePrometheus(pawl, wrong({ prot: 1 })),
    'servePrometheus() has no option "prot"; did you mean "port"? Its options are port, host, logger.',
  ],
};

/** Functions of docs/api.md whose parameter has a name like "options" but that user code never calls. */
const notCalledByUsers = new Set(["constructor", "frozen", "log", "open", "rollback", "inbox"]);

type Call = readonly [call: (world: World) => unknown, said: string];

const all = Object.entries(calls).flatMap(([name, [call, said, others = {}]]) => [
  [name, call, said] as const,
  ...Object.entries(others).map(([of, other]) => [`${name}, ${of}`, ...(other as Call)] as const),
]);

test.each(all)("an unknown option is refused: %s", async (_name, call, said) => {
  const t = await start(charge);
  const inside: World["inside"] = async (body) => {
    const asking = workflow("asking", { retry: { attempts: 1 } }, async (ctx) => {
      await body(ctx);
    });
    await t.deploy([charge, asking]);
    throw await failureOf(t, await t.pawl.start(asking));
  };
  const iterating: World["iterating"] = async (body) => {
    class Iterating extends Workflow {
      static {
        this.options({ onException: "fail" });
        this.resumableStep("go", (_w, iter) => body(iter));
      }
    }
    await t.deploy([charge, Iterating]);
    throw await failureOf(t, await t.pawl.start(Iterating));
  };
  const error = await errorOf((async () => call({ t, pawl: t.pawl, inside, iterating }))());
  expect(error).toMatchObject({ code: "INVALID_INPUT" });
  expect(error.message).toContain(said);
});

async function failureOf(t: TestPawl, run: Awaited<ReturnType<Pawl["start"]>>): Promise<unknown> {
  await t.settle();
  return Object.assign((await run.get()).error ?? new Error("It did not fail."), { code: "INVALID_INPUT" });
}

test("every function of the API reference that takes options has a case here", () => {
  const reference = readFileSync("docs/api.md", "utf8");
  const blocks = [...reference.matchAll(/^```dts\n([\s\S]*?)^```$/gm)].map(([, code]) => code as string);
  const names = new Set<string>();
  for (const line of blocks.join("\n").split("\n")) {
    const takes =
      /\b(?:options|page|pages|filter)\??: (?!ErrorOptions)/.test(line) ||
      /\.\.\.\w+: (?:Start|Signal|Child)Args/.test(line);
    const name = /^\s*(?:function |static )*(\w+)[<(]/.exec(line)?.[1];
    if (takes && name !== undefined && !notCalledByUsers.has(name)) names.add(name);
  }
  // These are members of an object that the reference shows without their signatures.
  names.add("trigger");
  expect(names.size).toBeGreaterThan(40);
  expect([...names].filter((name) => !Object.hasOwn(calls, name))).toEqual([]);
});

test("a value that is not an options object is refused", async () => {
  const t = await start(charge);
  const refusals = [
    await errorOf(t.pawl.start(charge, {}, null as never)),
    await errorOf(t.pawl.runs("failed" as never)),
    await errorOf(t.pawl.prune(undefined as never)),
    await errorOf(t.pawl.prune(["30d"] as never)),
  ];
  expect(refusals.map(({ message }) => message)).toEqual([
    'start("charge") takes its options as an object, not null.',
    "runs() takes its filters as an object, not a string.",
    "prune() takes its options as an object, not undefined.",
    "prune() takes its options as an object, not a list.",
  ]);
});

test("a misspelt filter of prune() deletes nothing", async () => {
  const t = await start(charge);
  const run = await t.pawl.start(charge, {});
  await t.speedrun(run);
  await t.advance("1 day");
  await errorOf(t.pawl.prune(wrong({ olderThan: "1h", worklfow: "another" })));
  expect(await run.status()).toBe("completed");
});

test.each([
  ["memory:", "with memory: leave it out: every memory store is separate"],
  ["sqlite::memory:", "with sqlite: use another file"],
  ["libsql::memory:", "with libsql: use another file"],
  ["mysql://localhost:1/app", "with mysql: name another database in the URL"],
])("a schema is refused where it would have no effect: %s", async (url, instead) => {
  const error = await errorOf(connect(url, { schema: "tenant_1" }));
  expect(error.message).toBe(`The option "schema" is for PostgreSQL alone; ${instead}.`);
});
