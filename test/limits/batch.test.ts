/** Workflows that gather their starts: the option `batch`. */
import { randomUUID } from "node:crypto";
import {
  graph,
  limit,
  PermanentError,
  type RunHandle,
  type StepContext,
  schedule,
  step,
  Workflow,
  workflow,
} from "pawl";
import { expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { everyStoreBriefly } from "../support/effort.js";
import { schema } from "../support/standard-schemas.js";
import { databaseFor, type World } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";

interface Mail {
  readonly user: string;
  readonly text: string;
}

const pass = ({ clock }: World, ms: number) => clock.moveTo(clock.read() + ms);
const batch = { key: "input.user", size: 3, within: "2s" } as const;
const mailsTo = (user: string, count: number) => Array.from({ length: count }, (_, n) => ({ user, text: `${n}` }));
const resultsOf = (runs: readonly RunHandle<any, any>[]) =>
  Promise.all(runs.map((run) => run.result({ timeout: "100s" })));
const batchOf = ({ runId }: RunHandle<any, any>) => runId;

/** Each test has workflows of its own, because the tests of one store share a database. */
function mailing(options: object = {}) {
  const sent: string[] = [];
  const mail = workflow(`mail ${randomUUID()}`, { batch, ...options }, async (ctx, mails: Mail[]) => {
    await ctx.step("send", () => void sent.push(mails.map(({ user, text }) => `${user}${text}`).join()));
    await ctx.sleep("pause", "1s");
    return mails.map(({ text }) => `sent ${text}`);
  });
  return { sent, mail };
}

forEachStore((kind) => {
  const database = databaseFor(kind);

  async function settleAfter(w: World, settle: () => Promise<unknown>, ...delays: number[]) {
    for (const ms of delays) {
      pass(w, ms);
      await settle();
    }
  }

  test("batch: starts of one key are gathered, and every start gets its own output", async () => {
    const { sent, mail } = mailing();
    const w = await database.world();
    const { settle } = await w.worker([mail]);
    const first = await w.pawl.start(mail, { user: "a", text: "0" });
    const others = await w.pawl.startMany(mail, [...mailsTo("b", 2), { user: "a", text: "1" }]);
    expect([first, ...others].map(({ created, merged }) => [created, merged])).toEqual([
      [true, false],
      [true, false],
      [false, true],
      [false, true],
    ]);
    expect(first.id).toBe(`${first.runId}.0`);
    expect(others.at(-1)?.id).toBe(`${first.runId}.1`);
    await settle();
    expect(sent).toEqual([]);
    const open = await others[2]?.get();
    expect(open).toMatchObject({ id: others[2]?.id, status: "pending", input: { user: "a", text: "1" }, output: null });
    expect(open?.gathered).toMatchObject({ by: "batch", key: "a", starts: 2, isOpen: true, position: 1 });
    expect(await first.explain()).toMatchObject({
      because: "gathering",
      text: expect.stringContaining("as soon as there are 3"),
      until: new Date(w.clock.read() + 2_000),
    });
    await settleAfter(w, settle, 2_000, 1_000);
    expect(sent.toSorted()).toEqual(["a0,a1", "b0,b1"]);
    expect(await resultsOf([first, ...others])).toEqual(["sent 0", "sent 0", "sent 1", "sent 1"]);
    const again = w.pawl.run(mail, others[1]?.id as string);
    expect(await again.result()).toBe("sent 1");
    expect(await again.get()).toMatchObject({ input: { user: "b", text: "1" }, output: "sent 1" });
    const whole = await w.pawl.run(first.runId).get();
    expect(whole).toMatchObject({ input: [{ text: "0" }, { text: "1" }], output: ["sent 0", "sent 1"] });
    expect(whole.gathered).toMatchObject({ starts: 2, isOpen: false, position: null });
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("batch: a full batch is due at once, and the next start opens another", async () => {
    const { sent, mail } = mailing();
    const w = await database.world();
    const { settle } = await w.worker([mail]);
    const runs = await w.pawl.startMany(mail, mailsTo("a", 7));
    expect(runs.map(({ created }) => created)).toEqual([true, false, false, true, false, false, true]);
    await settle();
    expect(sent.toSorted()).toEqual(["a0,a1,a2", "a3,a4,a5"]);
    const eighth = await w.pawl.start(mail, { user: "a", text: "7" });
    expect(batchOf(eighth)).toBe(batchOf(runs[6] as RunHandle));
    await w.pawl.start(mail, { user: "a", text: "8" });
    await settle();
    expect(sent.at(-1)).toBe("a6,a7,a8");
  });

  test("batch: a start after the run began opens another", async () => {
    const began = gate();
    const goOn = gate();
    const sizes: number[] = [];
    const mail = workflow(`mail ${randomUUID()}`, { batch }, async (ctx, mails: Mail[]) => {
      sizes.push(mails.length);
      began.open();
      await ctx.step("send", () => goOn.opened);
      return mails.map(({ text }) => text);
    });
    const w = await database.world();
    const { settle } = await w.worker([mail]);
    const first = await w.pawl.start(mail, { user: "a", text: "0" });
    pass(w, 2_000);
    const settled = settle();
    await began.opened;
    const second = await w.pawl.start(mail, { user: "a", text: "1" });
    expect(second).toMatchObject({ created: true, merged: false });
    goOn.open();
    await settled;
    await settleAfter(w, settle, 2_000);
    expect(await resultsOf([first, second])).toEqual(["0", "1"]);
    expect(sizes).toEqual([1, 1]);
  });

  test("batch: a replay and another worker see the same list", async () => {
    const seen: string[] = [];
    const began = gate();
    const mail = workflow(`mail ${randomUUID()}`, { batch }, async (ctx, mails: Mail[]) => {
      seen.push(mails.map(({ text }) => text).join());
      began.open();
      await ctx.step("send", () => (seen.length === 1 ? new Promise<void>(() => {}) : undefined));
      await ctx.sleep("pause", "1s");
      return mails.map(({ text }) => text);
    });
    const w = await database.world();
    const runs = await w.pawl.startMany(mail, mailsTo("a", 2));
    pass(w, 2_000);
    const dying = await w.worker([mail]);
    void dying.settle();
    await began.opened;
    await dying.kill();
    runs.push(await w.pawl.start(mail, { user: "a", text: "late" }));
    const { settle } = await w.worker([mail]);
    await settle();
    await settleAfter(w, settle, 1_000, 1_000, 1_000);
    expect(seen).toEqual(["0,1", "0,1", "0,1", "late", "late"]);
    expect(await resultsOf(runs)).toEqual(["0", "1", "late"]);
  });

  test("batch: an idempotency key belongs to one element", async () => {
    const { sent, mail } = mailing();
    const w = await database.world();
    const { settle } = await w.worker([mail]);
    const begin = (text: string, idempotencyKey: string, user = "a") =>
      w.pawl.start(mail, { user, text }, { idempotencyKey });
    const first = await begin("0", "k0");
    const [second, repeated, third] = await Promise.all([begin("1", "k1"), begin("1", "k1"), begin("0", "k0")]);
    expect(second).toMatchObject({ created: false, merged: true });
    expect(repeated).toMatchObject({ id: second.id, created: false, merged: false });
    expect(third).toMatchObject({ id: first.id, created: false, merged: false });
    expect((await errorOf(begin("other", "k0"))).message).toContain('"k0" and another input');
    expect((await w.pawl.find(mail, { idempotencyKey: "k1" }))?.id).toBe(second.id);
    expect(await w.pawl.find(mail, { idempotencyKey: "k2" })).toBe(null);
    await settleAfter(w, settle, 2_000, 1_000);
    expect(sent).toEqual(["a0,a1"]);
    expect(await begin("1", "k1")).toMatchObject({ id: second.id, created: false });
    expect(await resultsOf([await begin("1", "k1")])).toEqual(["sent 1"]);
    expect((await errorOf(begin("1", "k1", "b"))).message).toContain('"k1" and another input');
  });

  test("batch: an error fails all starts, and so does a list of another length", async () => {
    const failing = workflow(`failing ${randomUUID()}`, { batch }, async (_ctx, _mails: Mail[]): Promise<string[]> => {
      throw new PermanentError("no mail server");
    });
    const short = workflow(`short ${randomUUID()}`, { batch }, async (_ctx, _mails: Mail[]) => ["only one"]);
    const nothing = workflow(`nothing ${randomUUID()}`, { batch }, async (_ctx, _mails: Mail[]) => {});
    const w = await database.world();
    const { settle } = await w.worker([failing, short, nothing]);
    const failed = await w.pawl.startMany(failing, mailsTo("a", 3));
    const wrong = await w.pawl.startMany(short, mailsTo("a", 3));
    const silent = await w.pawl.startMany(nothing, mailsTo("a", 3));
    await settle();
    for (const run of failed)
      expect(await errorOf(run.result())).toMatchObject({ cause: { message: "no mail server" } });
    for (const run of wrong)
      expect((await errorOf(run.result())).message).toContain(
        "must return a list with one output for each of its 3 inputs, in their order; it returned a list of 1",
      );
    expect(await resultsOf(silent)).toEqual([undefined, undefined, undefined]);
    const retried = await w.pawl.run(failed[0]?.runId as string).retry();
    await settle();
    expect(await retried.get()).toMatchObject({ input: mailsTo("a", 3), error: { message: "no mail server" } });
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("batch: a command to one start is refused, because it would meet all of them", async () => {
    const { mail } = mailing();
    const w = await database.world();
    const [run] = await w.pawl.startMany(mail, mailsTo("a", 2));
    const element = run as RunHandle<Mail, string>;
    for (const command of [element.cancel(), element.pause(), element.signal("s"), element.retry()])
      expect((await errorOf(command)).message).toContain(`send commands to pawl.run("${element.runId}")`);
    await w.pawl.run(element.runId).cancel("not today");
    expect(await errorOf(element.result())).toMatchObject({ code: "RUN_CANCELED" });
    expect((await element.get()).input).toEqual({ user: "a", text: "0" });
  });

  test("batch: a trigger that knows only the name gathers by the path of the key; a function is refused", async () => {
    const { sent, mail } = mailing();
    const byFunction = workflow(
      `mail ${randomUUID()}`,
      { batch: { ...batch, key: ({ input }) => input.user } },
      async (_ctx, mails: Mail[]) => mails.map(({ text }) => text),
    );
    const w = await database.world();
    const { settle } = await w.worker([mail, byFunction]);
    const first = await w.pawl.start(mail, { user: "a", text: "0" });
    const named = w.pawl.workflow<Mail, string>(mail.name);
    const second = await named.trigger({ user: "a", text: "1" });
    const [third] = await named.triggerMany([{ user: "a", text: "2" }]);
    expect([second, third].map((run) => run?.runId)).toEqual([first.runId, first.runId]);
    await settleAfter(w, settle, 0, 1_000);
    expect(await resultsOf([second])).toEqual(["sent 1"]);
    expect(sent).toEqual(["a0,a1,a2"]);
    const [one, two] = await w.pawl.startMany(byFunction, mailsTo("a", 2));
    expect(one?.runId).toBe(two?.runId);
    const refused = w.pawl.workflow(byFunction.name).trigger({ user: "a", text: "" });
    expect((await errorOf(refused)).message).toContain(
      "a function as their key, which only a process with its code can compute",
    );
  });

  test("batch: works in every style, with limits, and with schemas of one input and one output", async () => {
    const perUser = limit(`per user ${randomUUID()}`, { key: "input.user", concurrency: 1 });
    const { mail, sent } = mailing({ limits: [perUser] });
    const upper = workflow(
      `upper ${randomUUID()}`,
      {
        batch: { size: 2, within: "2s" },
        input: schema((value: string) => ({ value: value.toUpperCase() })),
        output: schema((value: string) => ({ value: `${value}!` })),
      },
      async (_ctx, texts: string[]) => texts,
    );
    const double = step("double", async (ctx: StepContext<number[]>) => ctx.input.map((n) => 2 * n));
    const drawn = graph(`graph ${randomUUID()}`, [double], { batch: { size: 2, within: "2s" } });
    class Adding extends Workflow<null, number[], number[]> {
      static readonly batch = { size: 2, within: "2s" } as const;
      static {
        this.options({ name: `class ${randomUUID()}` });
        this.step("add", (w) => w.finish(w.input.map((n) => n + 1)));
      }
    }
    const w = await database.world();
    const { settle } = await w.worker([mail, upper, drawn, Adding]);
    const mails = await w.pawl.startMany(mail, mailsTo("a", 6));
    const texts = await w.pawl.startMany(upper, ["a", "b"]);
    const numbers = await w.pawl.startMany(drawn, [1, 2]);
    const sums = await w.pawl.startMany(Adding, [1, 2]);
    await settleAfter(w, settle, 0, 1_000, 1_000, 1_000);
    expect(await resultsOf(texts)).toEqual(["A!", "B!"]);
    expect(await resultsOf(numbers)).toEqual([2, 4]);
    expect(await resultsOf(sums)).toEqual([2, 3]);
    expect(await resultsOf(mails)).toEqual(mailsTo("a", 6).map(({ text }) => `sent ${text}`));
    expect(sent.length).toBe(2);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });

  test("batch: a start that cannot be gathered is a batch of one", async () => {
    const { sent, mail } = mailing();
    const parent = workflow(`parent ${randomUUID()}`, (ctx) => ctx.run(mail, { user: "p", text: "child" }));
    const daily = schedule(`daily ${randomUUID()}`, {
      workflow: mail,
      input: { user: "s", text: "planned" },
      every: "1h",
    });
    const w = await database.world();
    const { settle, pawl } = await w.worker([mail, parent], { schedules: [daily] });
    const delayed = await w.pawl.start(mail, { user: "d", text: "later" }, { delay: "1s" });
    expect(delayed.id).toBe(delayed.runId);
    const child = await w.pawl.start(parent);
    await pawl.schedules.trigger(daily.name);
    await settleAfter(w, settle, 1_000, 1_000, 1_000);
    expect(await resultsOf([delayed, child])).toEqual(["sent later", "sent child"]);
    const [planned] = (await w.pawl.runs({ workflow: mail })).runs.filter((run) => run.schedule !== null);
    expect(planned?.output).toBe("sent planned");
    expect(sent.toSorted()).toEqual(["dlater", "pchild", "splanned"]);
    const keyed = w.pawl.start(mail, { user: "d", text: "" }, { delay: "1s", idempotencyKey: "k" });
    expect((await errorOf(keyed)).message).toContain("takes either `idempotencyKey` or `delay`");
  });
}, everyStoreBriefly);
