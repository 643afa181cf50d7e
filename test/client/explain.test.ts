/** explain() names every reason why a run can make no progress. */
import { PauseError, Workflow, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { silent, world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

const listening = workflow("listening", (ctx) => ctx.waitForSignal("go", { timeout: "2 days" }));
const quick = workflow("quick", (ctx) => ctx.step("one", () => 1));
const orderOf = (version: string) =>
  workflow("order", { version }, async (ctx) => {
    await ctx.step("begin", () => version);
    await ctx.sleep("nap", "1 day");
    return version;
  });
const [first, second] = [orderOf("1"), orderOf("2")];

forMemoryAnd("postgres", (kind) => {
  test("a run without a worker for its version waits, and explain() says so", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const old = await w.worker([first]);
    const run = await w.pawl.start(first);
    const due = (await old.settle()) as number;
    expect((await run.get()).explanation).toBeNull();
    await old.worker.stop();
    w.clock.moveTo(due);
    const { settle } = await w.worker([second], { name: "new-code" });
    await settle();
    expect(await run.get()).toMatchObject({ status: "waiting", version: "1" });
    expect((await run.get()).explanation).toBe(
      `It has been due since ${new Date(due).toISOString()}, but no live worker has workflow "order" version "1". ` +
        'Live workers have other versions of it: "2"; a run stays with the version that it was started with.',
    );
    expect(await run.explain()).toMatchObject({ because: "no_worker", since: new Date(due), until: null });
    const again = await w.worker([first]);
    await again.settle();
    expect(await run.result()).toBe("1");
  });
});

describe("explain()", () => {
  const at = (ms: number) => new Date(ms).toISOString();

  test("says how and when a run ended", async () => {
    const w = await world();
    const { settle } = await w.worker([quick, listening]);
    const [done, gone] = [await w.pawl.start(quick), await w.pawl.start(listening)];
    await gone.cancel("not needed");
    await settle();
    const now = at(w.clock.read());
    expect(await done.explain()).toMatchObject({ because: "ended", text: `It completed at ${now}` });
    expect(await gone.explain()).toMatchObject({ because: "ended", text: `It was canceled at ${now}: not needed` });
  });

  test("says that no live worker has the workflow, and when a delayed run will start", async () => {
    const w = await world();
    const now = await w.pawl.start(quick);
    expect(await now.explain()).toMatchObject({
      because: "no_worker",
      text: `It has been due since ${at(w.clock.read())}, but no live worker has workflow "quick". There is no live worker at all.`,
    });
    const planned = await w.pawl.start(quick, undefined, { delay: "1 day" });
    const until = new Date(w.clock.read() + 86_400_000);
    expect(await planned.explain()).toMatchObject({ because: "planned", until });
    expect((await planned.explain()).text).toBe(`It has not started: it is planned for ${until.toISOString()}.`);
    expect((await planned.get()).explanation).toBeNull();
  });

  test("names the worker that executes a run, and says when the lease of that worker has expired", async () => {
    const w = await world();
    const open = gate();
    const slow = workflow("slow", (ctx) => ctx.step("think", () => open.opened, { onCrash: "pause" }));
    const { worker, settle } = await w.worker([slow], { name: "w1", lease: "1s" });
    const run = await w.pawl.start(slow);
    const settled = settle();
    await until(async () => (await run.history()).some(({ type }) => type === "step.started"));
    const executing = await run.explain();
    expect(executing.because).toBe("executing");
    expect(executing.text).toMatch(
      /^It is being executed by worker "w1" \(.*, pid \d+\): step "think", since 20.*Z\.$/,
    );
    const [row] = await w.store.workers();
    const silentSince = { ...row, heartbeatAt: Math.min(w.clock.read(), Date.now()) - 10_000 };
    const { workers } = w.store;
    w.store.workers = async () => [silentSince as never];
    expect(await run.explain()).toMatchObject({
      because: "worker_lease_expired",
      text: expect.stringContaining("whose last heartbeat was at"),
    });
    w.store.workers = workers;
    open.open();
    await settled;
    expect(worker.active).toBe(0);
  });

  test("says when and why a cancel or a pause of an executing run was requested, before and after its worker has read it", async () => {
    for (const what of ["cancel", "pause"] as const) {
      const w = await world();
      const open = gate();
      const slow = workflow("slow", async (ctx) => {
        await ctx.step("think", () => open.opened, { onCrash: "pause" });
        await ctx.step("act", () => {});
      });
      const { settle } = await w.worker([slow], { name: "w1" });
      const run = await w.pawl.start(slow);
      const settled = settle();
      await until(async () => (await run.history()).some(({ type }) => type === "step.started"));
      const [task] = await w.store.tasks([run.id]);
      const asked = ` A ${what} was requested at ${at(w.clock.read())}: too late. It takes effect when the running steps have ended or reach a checkpoint.`;
      // This is the state before the worker has read the inbox.
      const { tasks, inbox } = w.store;
      w.store.tasks = async () => [{ ...task, pendingMessages: 1 } as never];
      const row = { id: 1, kind: what, data: JSON.stringify({ reason: "too late" }), at: w.clock.read() };
      w.store.inbox = async () => new Map([[run.id, [row]]]);
      expect((await run.explain()).text).toContain(`step "think", since ${at(w.clock.read())}.${asked}`);
      Object.assign(w.store, { tasks, inbox });
      await run[what]("too late");
      const recorded = what === "cancel" ? "run.cancel_requested" : "run.paused";
      await until(async () => (await run.history()).some(({ type }) => type === recorded));
      expect(await run.explain()).toMatchObject({ because: "executing", text: expect.stringContaining(asked) });
      open.open();
      await settled;
      expect(await run.status()).toBe(what === "cancel" ? "canceled" : "paused");
    }
  });

  test("says that a run waits for a free slot of a worker", async () => {
    const w = await world();
    const open = gate();
    const slow = workflow("slow", (ctx) => ctx.step("think", () => open.opened));
    const { worker, settle } = await w.worker([slow], { name: "w1", concurrency: 1, lease: 3_000 });
    await w.pawl.start(slow);
    await until(() => worker.active === 1);
    await until(async () => (await w.pawl.workers())[0]?.executing === 1);
    const run = await w.pawl.start(slow);
    const text = `It has been due since ${at(w.clock.read())}, and waits for a free slot of "w1" (executing 1 as of its last heartbeat).`;
    expect(await run.explain()).toMatchObject({ because: "about_to_run", text });
    expect((await run.get()).explanation).toBe(text);
    open.open();
    await settle();
  });

  test("says why a run is paused and what would resume it", async () => {
    const w = await world();
    const picky = workflow("picky", (ctx) =>
      ctx.step("pay", () => {
        throw new PauseError("The bank is closed.", { resumeOn: "bank_opened", recheckAfter: "1 hour" });
      }),
    );
    const { settle } = await w.worker([picky]);
    const run = await w.pawl.start(picky);
    await settle();
    const now = w.clock.read();
    expect(await run.explain()).toEqual({
      because: "paused",
      text: `It has been paused at step "pay" since ${at(now)} until an operator resumes it, or the signal "bank_opened" arrives, or it is tried again at ${at(now + 3_600_000)}: The bank is closed.`,
      since: new Date(now),
      until: new Date(now + 3_600_000),
    });
    const other = await w.pawl.start(listening);
    await other.pause("maintenance");
    expect((await other.explain()).text).toContain("until an operator resumes it: maintenance");
  });

  test("says what a waiting run waits for: signals, sleeps, attempts, children, the wait of a step", async () => {
    const w = await world();
    const flaky = workflow("flaky", (ctx) =>
      ctx.step("try", () => {
        throw new Error("no network");
      }),
    );
    const parent = workflow("parent", (ctx) => ctx.run(listening, undefined));
    const many = workflow("many", (ctx) => ctx.map(listening, [undefined, undefined], { concurrency: 1 }));
    const sleeper = workflow("sleeper", (ctx) => ctx.sleep("nap", "1 day"));
    class Later extends Workflow {
      static {
        this.step("remind", { wait: "3 days" }, () => {});
      }
    }
    const { settle } = await w.worker([flaky, parent, many, sleeper, listening, Later]);
    const all = [listening, flaky, parent, many, sleeper, Later] as const;
    const runs = await Promise.all(all.map((one) => w.pawl.start(one as typeof quick)));
    const now = w.clock.read();
    await settle();
    const day = 86_400_000;
    const texts = await Promise.all(runs.map(async (run) => (await run.explain()).text));
    const children = (await w.pawl.runs({ workflow: listening })).runs;
    const child = children.find(({ parentId }) => parentId === runs[2]?.id);
    expect(texts[0]).toBe(`It waits for the signal "go", since ${at(now)}, until ${at(now + 2 * day)} at the latest.`);
    expect(texts[1]).toMatch(/^It waits for attempt 2 at step "try" at 20.*Z, because of: no network\.$/);
    expect(texts[2]).toBe(`It waits for its child ${child?.id} (workflow "listening", waiting).`);
    expect(texts[3]).toMatch(/^It waits for the children of ".*" \(workflow "listening"\): 0 of 2 have ended\.$/);
    expect(texts[4]).toBe(`It waits for the end of its sleep "nap" at ${at(now + day)}.`);
    expect(texts[5]).toBe(`It waits for the time of step "remind" at ${at(now + 3 * day)}.`);
    const held = children.find(({ parentId, status }) => parentId === runs[3]?.id && status === "pending");
    expect((await w.pawl.run(held?.id as string).explain()).text).toContain("has not released this one yet");
    for (const run of runs) expect((await run.explain()).because).toBe("waiting");
  });

  test("names signals that the run has received but not asked for", async () => {
    const w = await world();
    const { settle } = await w.worker([listening]);
    const run = await w.pawl.start(listening);
    await settle();
    for (const name of ["goo", "goo", "stop"]) await run.signal(name);
    await settle();
    expect((await run.explain()).text).toMatch(
      /^It waits for the signal "go", .* It has received "goo", "stop", which it does not wait for\.$/,
    );
  });

  test("says that a canceled run must be compensated but no worker is available", async () => {
    const booking = workflow("booking", async (ctx) => {
      await ctx.step("book", () => 1, { compensate: () => {} });
      await ctx.waitForSignal("go");
    });
    const w = await world();
    const { settle, worker } = await w.worker([booking]);
    const run = await w.pawl.start(booking);
    await settle();
    await worker.stop();
    await run.cancel();
    expect((await run.explain()).text).toMatch(
      /^It is being canceled: a worker has to compensate its completed steps\. It has been due .* no live worker has workflow "booking"\./,
    );
    await (await w.worker([booking])).settle();
    expect(await run.status()).toBe("canceled");
  });

  test("says that no worker serves the queue of the next step", async () => {
    class Mailing extends Workflow {
      static {
        this.step("write", () => {});
        this.step("send", { queue: "mail" }, () => {});
      }
    }
    const w = await world("memory", "memory:", silent);
    const { settle } = await w.worker([Mailing], { queues: ["Mailing"] });
    const run = await w.pawl.start(Mailing);
    await settle();
    expect((await run.get()).explanation).toContain('no live worker has workflow "Mailing", queue "mail".');
  });

  test("says that the queue of a run, or of its next step, is paused", async () => {
    class Mailing extends Workflow {
      static {
        this.step("write", () => {});
        this.step("send", { queue: "mail" }, () => {});
      }
    }
    const w = await world();
    const { worker, settle } = await w.worker([Mailing, quick, listening]);
    await w.pawl.pauseQueue("mail", "the provider is down");
    await w.pawl.pauseQueue("quick");
    const pausedAt = new Date(w.clock.read());
    await until(() => worker.pausedQueues.length === 2);
    w.clock.moveTo(w.clock.read() + 1_000);
    const now = at(w.clock.read());
    const [mailing, simple, other] = [
      await w.pawl.start(Mailing),
      await w.pawl.start(quick),
      await w.pawl.start(listening),
    ];
    await settle();
    const text = `It has been due since ${now}, but its queue "mail" has been paused since ${pausedAt.toISOString()}, until an operator resumes the queue: the provider is down`;
    expect(await mailing.explain()).toEqual({ because: "queue_paused", text, since: pausedAt, until: null });
    expect((await mailing.get()).explanation).toBe(text);
    expect(await simple.explain()).toMatchObject({
      because: "queue_paused",
      text: `It has been due since ${now}, but its queue "quick" has been paused since ${pausedAt.toISOString()}, until an operator resumes the queue`,
    });
    expect((await other.explain()).because).toBe("waiting");
  });
});
