import { test } from "vitest";
import { workflow } from "pawl";
import { crashTest } from "pawl/testing";
import { testDatabase } from "../test/stores/harness.js";
test("x", async () => {
  const db = await testDatabase("sqlite");
  const wf = workflow("wf", async (ctx) => {
    await ctx.step("a", () => 1);
    await ctx.transaction("tx", async (tx: any) => { await tx.query("SELECT 1", []); return 2; });
    await ctx.step("b", () => 1);
    return 5;
  });
  let n = 0;
  console.log(await crashTest(wf, undefined, { store: db.url, setup: () => { console.log("trial", n++); } }));
}, 10_000);
