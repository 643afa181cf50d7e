import { expect, test } from "vitest";
import { testDatabase } from "../../test/support/databases.js";
import { forMemoryAnd, sized } from "../../test/support/effort.js";
import { crashEverywhere, executionsOf, stageOn } from "../class-style/harness.js";
import { GmailSync } from "./gmail.js";
import { archive, gmail, tokenOf } from "./google.js";

const mailbox = { type: "Mailbox", id: "ada" } as const;

function reset(): void {
  gmail.pages = [["a", "b"], ["c"], [], ["d", "e"], []];
  gmail.broken = null;
  gmail.read = [];
  archive.effects.forget();
}

forMemoryAnd("mysql", (kind) => {
  const stage = stageOn(() => testDatabase(kind), [GmailSync], reset);

  test("a mailbox is copied page by page; an empty page in the middle ends an execution, an empty last page ends the step", async () => {
    const { t } = stage;
    const run = await t.pawl.start(GmailSync, undefined, { hero: mailbox });
    await t.speedrun(run);
    expect(await executionsOf(run)).toEqual([
      "sync_gmail 1: completed (continued)",
      "sync_gmail 2: completed (success)",
    ]);
    const [first, second] = await run.executions();
    expect([first?.successor, second?.continuesFrom]).toEqual([second?.id, first?.id]);
    expect(gmail.read).toEqual([0, 1, 2, 3, 4]);
    expect(archive.effects.all).toEqual(["a", "b", "c", "d", "e"]);
    expect(archive.effects.repeats).toBe(0);
    await t.assertCursor(run, null);
  });

  test("a page that cannot be read pauses the run, and the resumed run requests that page again", async () => {
    const { t } = stage;
    gmail.broken = 3;
    const run = await t.pawl.start(GmailSync, undefined, { hero: mailbox });
    await t.settle();
    expect(await executionsOf(run)).toEqual([
      "sync_gmail 1: completed (continued)",
      "sync_gmail 2: failed (paused_by_exception)",
    ]);
    expect(await run.get()).toMatchObject({ status: "paused", currentStep: "sync_gmail" });
    await t.assertCursor(run, tokenOf(3));

    gmail.broken = null;
    await run.resume();
    await t.speedrun(run);
    expect((await executionsOf(run)).slice(2)).toEqual(["sync_gmail 3: completed (success)"]);
    expect(gmail.read).toEqual([0, 1, 2, 3, 4]);
    expect(archive.effects.all).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("a mailbox of only empty pages completes", async () => {
    const { t } = stage;
    gmail.pages = [[], [], []];
    const run = await t.pawl.start(GmailSync, undefined, { hero: mailbox });
    await t.speedrun(run);
    expect((await run.executions()).map(({ outcome }) => outcome)).toEqual(["continued", "continued", "success"]);
    expect(gmail.read).toEqual([0, 1, 2]);
  });

  if (kind === "memory" || kind === "mysql")
    test("a mailbox is copied completely wherever the worker dies, and at most one page is read again", async () => {
      await crashEverywhere(stage, GmailSync, undefined, {
        points: kind === "memory" ? "all" : sized(2, 4),
        hero: mailbox,
        setup: reset,
        check: () => {
          expect(archive.effects.all).toEqual(["a", "b", "c", "d", "e"]);
          expect(gmail.read.length).toBeLessThanOrEqual(6);
          expect(new Set(gmail.read).size).toBe(5);
        },
      });
    });
});
