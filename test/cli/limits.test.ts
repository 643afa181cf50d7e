/** `limits`: the list, one limit with its keys and holders, overrides; `explain` of a run that waits for a limit. */
import { connect, limit, type Pawl, workflow } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { gate, until } from "../support/waiting.js";
import { Folder, newFolder } from "./command-line.js";
import { silent } from "./sample-runs.js";

const perTenant = limit("per_tenant", { key: "input.tenant", concurrency: 1 });
const openai = limit("openai", { concurrency: 60, rate: { limit: 100, per: "1m", burst: 5 } });
const customer = limit("customer", { key: "input.tenant", concurrency: 1, while: "open", onFull: "fail", backlog: 3 });

const squeezed = (text: string) => text.trimEnd().replace(/ {2,}/g, "  ").split("\n");

/** A folder whose database knows three limits, none of which is in use. */
async function folderWithLimits(): Promise<Folder> {
  const folder = newFolder();
  const pawl = await connect(folder.url, { logger: silent });
  await (
    await pawl
      .worker({ workflows: [workflow("all", { limits: [perTenant, openai, customer] }, async () => {})] })
      .start()
  ).stop();
  await pawl.close();
  return folder;
}

describe("what is printed while a run holds the only slot of a key and two wait for it", () => {
  let folder: Folder;
  let pawl: Pawl;
  const done = gate();
  const ids: string[] = [];
  beforeAll(async () => {
    folder = new Folder();
    pawl = await connect(folder.url, { logger: silent });
    let entered = 0;
    const sync = workflow("sync", { limits: [perTenant, openai] }, (ctx, _: { tenant: string }) =>
      ctx.step("work", async () => {
        entered += 1;
        await done.opened;
      }),
    );
    const other = workflow("other", { limits: [customer] }, async () => {});
    await pawl.worker({ workflows: [sync, other] }).start();
    for (let count = 0; count < 3; count += 1) {
      ids.push((await pawl.start(sync, { tenant: "acme" })).id);
      await until(() => entered === 1);
    }
    await until(async () => (await pawl.limits.get("per_tenant"))?.lanes[0]?.waiting === 2);
    await pawl.limits.override("openai", {
      ...{ concurrency: 5, until: new Date("2099-12-31T23:00Z") },
      ...{ by: "ada", reason: "Their incident." },
    });
  });
  afterAll(async () => {
    done.open();
    await pawl.close();
    folder.remove();
  });

  test("the list has a line for each, with what is in force, in use and waiting", async () => {
    const text = await folder.text("limits");
    expect(await folder.text("limits", "list")).toBe(text);
    const [head, ...lines] = squeezed(text);
    expect(head).toBe("limit  slots  rate  in use  waiting  override");
    expect(lines.map((line) => line.split("  ")[0])).toEqual(["customer", "openai", "per_tenant"]);
    expect(lines[0]).toBe("customer  1  0  0");
    expect(lines[1]).toMatch(/^openai {2}5 {2}100 in 1m, burst 5 {2}1 {2}0 {2}ends in [\d,]+ days, by…$/);
    expect(lines[2]).toBe("per_tenant  1  1  2");
    const json = await folder.json("limits");
    expect(json).toMatchObject([
      { name: "customer", while: "open" },
      { name: "openai", concurrency: 60, inForce: { concurrency: 5 }, override: { by: "ada", concurrency: 5 } },
      { name: "per_tenant", inUse: 1, waiting: 2 },
    ]);
    expect(await folder.text("limits", "list", "--names")).toBe("customer\nopenai\nper_tenant\n");
  });

  test("show has the keys with their holders, what waits, and both values of an override", async () => {
    const lines = squeezed(await folder.text("limits", "show", "per_tenant"));
    expect(lines.slice(0, 5)).toEqual([
      "per_tenant",
      "  slots  1 for each key",
      "  held  while it is executed",
      "  in use  1",
      "  waiting  2",
    ]);
    expect(lines.at(-2)).toBe("key  in use  waiting  next  held by");
    expect(lines.at(-1)).toMatch(new RegExp(`^acme {2}1 of 1 {2}2 {2}${ids[0]} {2}(now|\\d+s ago)$`));
    expect(await folder.text("limits", "show", "per_tenant", "--key", "acme")).toContain(ids[0]);
    expect(await folder.text("limits", "show", "per_tenant", "--key", "globex")).toContain("No slot is in use");
    expect(await folder.json("limits", "show", "per_tenant")).toMatchObject({
      lanes: [{ key: "acme", inUse: 1, waiting: 2, holders: [{ runId: ids[0] }] }],
      next: null,
    });
    expect(squeezed(await folder.text("limits", "show", "customer"))).toContain(
      "  full  3 of a key may wait, then further runs fail",
    );
    const openaiLines = squeezed(await folder.text("limits", "show", "openai"));
    expect(openaiLines[0]).toBe("openai  overridden");
    expect(openaiLines[1]).toBe("  slots  5 for each key (the code says 60)");
    expect(openaiLines[2]).toBe("  rate  100 in 1m, burst 5");
    expect(openaiLines.find((line) => line.startsWith("  override"))).toMatch(
      /^ {2}override {2}by ada .*, until 31 Dec 2099 23:00 .*: Their incident\.$/,
    );
  });

  test("explain says which limit a run waits for, its place in the line, and who holds the slot", async () => {
    expect(await folder.text("explain", ids[2] as string)).toMatch(
      new RegExp(
        `waits for a free slot of the limit "per_tenant" for the key "acme": 1 of 1 slots are in use, by ${ids[0]}\\. It is number 2 of 2 that wait\\.`,
      ),
    );
    expect(await folder.json("explain", ids[2] as string)).toMatchObject({
      because: "limited",
      limited: { limit: "per_tenant", key: "acme", position: 2, holders: [{ runId: ids[0] }] },
    });
    expect(await folder.text("show", ids[1] as string)).toContain('the limit "per_tenant"');
  });

  test("the names of limits complete in shells", async () => {
    expect(await folder.text("completion", "bash")).toContain("pawl limits list --names");
    expect(await folder.text("help", "limits")).toContain("--concurrency");
  });
});

test("an override is set, shown and cleared", async () => {
  const folder = await folderWithLimits();
  const said = await folder.text(
    ...["limits", "override", "openai", "--concurrency", "5", "--rate", "30/1m", "--burst", "3"],
    ...["--until", "2099-12-31", "--by", "ada", "--reason", "Their incident."],
  );
  expect(said).toMatch(/^The override of limit "openai" is in force until 31 Dec 2099 00:00 \(in .* days\)\.\n$/);
  expect(await folder.json("limits", "show", "openai")).toMatchObject({
    ...{ concurrency: 60, inForce: { concurrency: 5, rate: { limit: 30, perMs: 60_000, burst: 3 } } },
    override: { by: "ada", reason: "Their incident.", until: "2099-12-31T00:00:00.000Z" },
  });
  const open = await folder.text("limits", "override", "openai", "--concurrency", "any", "--rate", "any");
  expect(open).toBe(
    'The override of limit "openai" is in force until it is cleared.\nTo end it: pawl limits clear openai\n',
  );
  const [, slots, rate] = squeezed(await folder.text("limits", "show", "openai"));
  expect([slots, rate]).toEqual([
    "  slots  any number for each key (the code says 60)",
    "  rate  any number (the code says 100 in 1m, burst 5)",
  ]);
  expect(await folder.text("limits", "clear", "openai")).toBe(
    'The override of limit "openai" is cleared; the values of the code are in force.\n',
  );
  expect(await folder.text("limits", "clear", "openai")).toBe('Limit "openai" had no override.\n');
  expect((await folder.json("limits", "override", "openai", "--rate", "10/s")).inForce.rate).toEqual({
    ...{ limit: 10, perMs: 1_000, burst: 0 },
  });
});

test("a database without limits says so", async () => {
  const folder = newFolder();
  await (await connect(folder.url, { logger: silent })).close();
  expect(await folder.text("limits")).toBe("No limits: no worker has registered any.\n");
  expect(await folder.json("limits")).toEqual([]);
  expect(await folder.error("limits", "show", "x")).toBe('There is no limit "x": no worker has registered any limit.');
});

test.each([
  [["shwo", "openai"], 'pawl limits has no "shwo"; did you mean "show"?'],
  [["frobnicate"], 'pawl limits has no "frobnicate"; it has list, show, override, clear.'],
  [["show"], "Which limit? Name it: pawl limits show <limit>"],
  [["list", "openai"], '"openai" is one argument too many; show a limit with: pawl limits show openai'],
  [["show", "opnai"], 'There is no limit "opnai"; did you mean "openai"?'],
  [["clear", "completely-else"], 'There is no limit "completely-else". `pawl limits` lists them.'],
  [["clear", "openai", "--reason", "x"], "--reason goes with override, not with clear."],
  [["override", "openai"], "The override changes nothing; give it --concurrency 5, --rate 100/1m, or both."],
  [["override", "opnai", "--concurrency", "5"], 'There is no limit "opnai"; did you mean "openai"?'],
  [["override", "openai", "--burst", "5"], "--burst goes with --rate, such as --rate 100/1m --burst 20."],
  [
    ["override", "openai", "--rate", "fast"],
    '--rate takes how many in which time, such as 100/1m, or "any", not "fast".',
  ],
  [
    ["override", "openai", "--concurrency", "0"],
    'The concurrency of limit "openai" must be a whole number of at least 1, not 0.',
  ],
  [
    ["override", "openai", "--concurrency", "5", "--until", "soon"],
    '--until takes a time ("2026-11-16 14:00") or how long from now ("2 days"), not "soon".',
  ],
  [["show", "openai", "--limit", "many"], '--limit takes a whole number, not "many".'],
])("%j is refused in one sentence", async (args, sentence) => {
  const folder = await folderWithLimits();
  expect(await folder.error("limits", ...args)).toBe(sentence);
});
