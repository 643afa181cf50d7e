/** Which of several sets of schedules is in force: rolling releases, roll-backs, applications and workers without any. */
import { type Logger, Pawl, schedule, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import { errorOf, until } from "../support/waiting.js";
import { ledgerOf, report, runsOf, schedulesOn, waiting } from "./support/schedule-worlds.js";

const hourly = (name: string, input = name) => schedule(name, { workflow: report, input, every: "1h" });
const [kept, removed, added] = [hourly("kept"), hourly("removed"), hourly("added")];
const hour = 3_600_000;

forEachStore((kind) => {
  const { start, cluster } = schedulesOn(kind);

  test("beside new workers, old ones bring nothing back and double nothing, also when they start again", async () => {
    const w = await cluster();
    const old = await w.process({ schedules: [kept, removed] });
    const released = await w.process({ schedules: [kept, added] });
    const lateOld = await w.process({ schedules: [kept, removed] });
    for (let hours = 1; hours <= 3; hours += 1) {
      w.clock.moveTo(Number(w.clock.now) + hour);
      await Promise.all([old.settle(), released.settle(), lateOld.settle()]);
      await released.settle();
    }
    expect(await ledgerOf(w.pawl, "removed")).toEqual([]);
    expect(await w.pawl.schedules.get("removed")).toMatchObject({ status: "retired" });
    const expected = ["ran 2026-11-01T13:00", "ran 2026-11-01T14:00", "ran 2026-11-01T15:00"];
    expect(await ledgerOf(w.pawl, "kept")).toEqual(expected);
    expect(await ledgerOf(w.pawl, "added")).toEqual(expected);
    expect(await runsOf(w.pawl, "report")).toHaveLength(6);
  });

  test("after a roll-back the old set is in force again, once the last new worker has ended", async () => {
    const w = await cluster();
    await w.process({ schedules: [kept, removed] });
    const released = await w.process({ schedules: [kept, added] });
    const rolledBack = await w.process({ schedules: [kept, removed] });
    expect((await w.pawl.schedules.get("removed")).status).toBe("retired");
    await released.stop();
    const again = await w.process({ schedules: [kept, removed] });
    expect(await w.pawl.schedules.get("removed")).toMatchObject({ status: "active" });
    expect(await w.pawl.schedules.get("added")).toMatchObject({ status: "retired" });
    w.clock.moveTo(Number(w.clock.now) + hour);
    await Promise.all([rolledBack.settle(), again.settle()]);
    expect(await ledgerOf(w.pawl, "removed")).toEqual(["ran 2026-11-01T13:00"]);
    expect(await ledgerOf(w.pawl, "added")).toEqual([]);
  });

  test("a roll-back needs no restart: old workers that still run take over when the last new one has ended", async () => {
    const w = await cluster();
    const old = new Pawl(w.store, silent).worker({ workflows: [report], schedules: [kept, removed], lease: "1s" });
    onTestFinished(() => old.stop());
    await old.start();
    const released = await w.process({ schedules: [kept, added] });
    expect((await w.pawl.schedules.get("removed")).status).toBe("retired");
    await released.stop();
    await until(async () => (await w.pawl.schedules.get("removed")).status === "active");
    expect(await w.pawl.schedules.get("added")).toMatchObject({ status: "retired" });
  });

  test("a function that computes inputs is called only in workers with the code that is in force", async () => {
    const w = await cluster();
    const before = schedule("priced", { workflow: report, input: () => "old price", every: "1h" });
    const after = schedule("priced", { workflow: report, input: () => "new price", every: "1h" });
    const old = await w.process({ schedules: [before] });
    const released = await w.process({ schedules: [after] });
    w.clock.moveTo(Number(w.clock.now) + hour);
    await old.settle();
    expect(await ledgerOf(w.pawl, "priced")).toEqual([]);
    await Promise.all([old.settle(), released.settle()]);
    expect((await runsOf(w.pawl, "report")).map(({ input }) => input)).toEqual(["new price"]);
  });

  test("a worker without `schedules` changes nothing, and fires what was put by the API", async () => {
    const w = await cluster();
    const declaring = await w.process({ schedules: [kept] });
    await w.pawl.schedules.put("put", { workflow: "report", input: null, every: "1h" });
    await declaring.stop();
    const plain = await w.process({});
    w.clock.moveTo(Number(w.clock.now) + hour);
    await plain.settle();
    expect(await w.pawl.schedules.get("kept")).toMatchObject({ status: "active", lateMs: 0 });
    expect(await ledgerOf(w.pawl, "kept")).toEqual([]);
    expect(await ledgerOf(w.pawl, "put")).toEqual(["ran 2026-11-01T13:00"]);
  });

  test("`schedules: []` retires all, what was put by the API excepted; a retired one can be deleted", async () => {
    const t = await start({ schedules: [kept, removed] });
    await t.pawl.schedules.put("put", { workflow: "report", input: null, every: "1h" });
    expect((await errorOf(t.pawl.schedules.delete("kept"))).message).toContain("would create it again");
    await t.deploy([report], [], []);
    const { schedules } = await t.pawl.schedules.list();
    expect(schedules.map(({ name, status }) => `${name} ${status}`)).toEqual([
      "kept retired",
      "put active",
      "removed retired",
    ]);
    await t.pawl.schedules.delete("kept");
    expect((await t.pawl.schedules.list()).schedules).toHaveLength(2);
  });

  test("applications with different names leave the schedules of each other alone, and a name has one owner", async () => {
    const errors: string[] = [];
    const logger: Logger = { ...silent, error: (message) => void errors.push(String(message)) };
    const w = await cluster();
    const shop = await w.process({ app: "shop", schedules: [hourly("shop-report"), hourly("taken", "of the shop")] });
    await w.pawl.schedules.put("mine", { workflow: "report", input: null, every: "1h" });
    const bank = await w.process({ app: "bank", schedules: [hourly("taken", "of the bank"), hourly("mine")], logger });
    expect(errors).toHaveLength(2);
    expect(errors.join()).toContain(
      '"taken" of application "bank" is not registered, because a schedule of this name belongs to application "shop"',
    );
    expect(errors.join()).toContain(
      '"mine" of application "bank" is not registered, because a schedule of this name was put by the API',
    );
    w.clock.moveTo(Number(w.clock.now) + hour);
    await Promise.all([shop.settle(), bank.settle()]);
    for (const name of ["shop-report", "taken", "mine"]) expect(await ledgerOf(w.pawl, name)).toHaveLength(1);
    const list = async (app: string) => (await w.pawl.schedules.list({ app })).schedules.map(({ name }) => name);
    expect(await list("shop")).toEqual(["shop-report", "taken"]);
    expect(await list("bank")).toEqual([]);
    const { message } = await errorOf(w.pawl.schedules.put("taken", { workflow: "report", every: "1h" }));
    expect(message).toContain('is declared by the code of application "shop"');
  });

  test("workers that start at the same time with the same schedules register each once", async () => {
    const w = await cluster();
    const workers = await Promise.all([1, 2, 3].map(() => w.process({ schedules: [kept, added] })));
    w.clock.moveTo(Number(w.clock.now) + hour);
    await Promise.all(workers.map(({ settle }) => settle()));
    expect((await w.pawl.schedules.list()).schedules.map(({ name }) => name)).toEqual(["added", "kept"]);
    expect(await runsOf(w.pawl, "report")).toHaveLength(2);
  });

  test("a run that is open keeps its place through a release", async () => {
    const before = schedule("held", { workflow: waiting, input: null, every: "1h", overlap: "bufferOne" });
    const after = schedule("held", {
      workflow: waiting,
      input: null,
      every: "1h",
      overlap: "bufferOne",
      tags: ["new"],
    });
    const t = await start({ schedules: [before] });
    await t.advance("2h");
    await t.deploy([waiting], [], [after]);
    const [open] = await runsOf(t.pawl, "waiting");
    await t.pawl.run(open?.id as string).signal("go");
    await t.settle();
    expect(await ledgerOf(t.pawl, "held")).toEqual(["ran 2026-11-01T13:00", "ran 2026-11-01T14:00"]);
    expect((await runsOf(t.pawl, "waiting")).map(({ tags }) => tags)).toEqual([[], ["new"]]);
  });

  test("a schedule may start a workflow that another worker executes", async () => {
    const done: string[] = [];
    const elsewhere = workflow("elsewhere", async () => void done.push("done"));
    const w = await cluster();
    const executing = await w.process({ workflows: [elsewhere] });
    const firing = await w.process({ schedules: [schedule("by-name", { workflow: "elsewhere", every: "1h" })] });
    w.clock.moveTo(Number(w.clock.now) + hour);
    await firing.settle();
    expect(done).toEqual([]);
    await executing.settle();
    expect(done).toEqual(["done"]);
  });
});
