/** The queries in docs/sql.md are executed and return what the page promises. */
import { readFileSync } from "node:fs";
import { Workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { type Row, rawSql } from "../support/raw-sql.js";
import { sqlStores } from "../support/view-rows.js";
import { databaseFor } from "../support/virtual-worlds.js";

const page = readFileSync(new URL("../../docs/sql.md", import.meta.url), "utf8");
const queries = [...page.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, query]) => query as string);

class Onboarding extends Workflow {
  static {
    this.step("welcome", { onException: "reattempt", retry: { initial: "1 minute", jitter: false } }, (w) => {
      if (w.attempt === 1) throw new Error("the mail server is away");
    });
    this.step("remind", { wait: "2 days" }, () => {});
  }
}

/** Some drivers return counts and instants as numbers, others as text. */
const asText = (rows: readonly Row[]) =>
  rows.map((row) => Object.values(row).map((value) => (value === null ? "–" : String(value))));

forEachStore((kind) => {
  const database = databaseFor(kind);

  test("the three queries return the expected rows", async () => {
    const w = await database.world();
    const worker = await w.worker([Onboarding]);
    const [user42, user43] = [
      await w.pawl.start(Onboarding, undefined, { hero: { type: "User", id: "42" } }),
      await w.pawl.start(Onboarding, undefined, { hero: { type: "User", id: "43" } }),
    ];
    await worker.settle();
    const begin = w.clock.read();
    await user43.pause();
    w.clock.moveTo(begin + 60_000);
    await worker.settle();
    const sql = await rawSql(database.url());
    onTestFinished(() => sql.close());

    expect(queries).toHaveLength(3);
    const answers: string[][][] = [];
    for (const query of queries) answers.push(asText(await sql.query(query)));
    const [happened, fails, toCome] = answers;
    const away = "the mail server is away";
    expect(happened).toEqual([
      ["Onboarding", "welcome", "1", "failed", "reattempted_by_exception", away],
      ["Onboarding", "welcome", "2", "completed", "success", "–"],
      ["Onboarding", "remind", "1", "scheduled", "–", "–"],
    ]);
    expect(fails).toEqual([["Onboarding", "welcome", "reattempted_by_exception", "2", "2", away]]);
    expect(toCome).toEqual([
      [user43.id, "welcome", "2", `${begin + 60_000}`],
      [user42.id, "remind", "1", `${begin + 60_000 + 2 * 86_400_000}`],
    ]);
  });
}, sqlStores);
