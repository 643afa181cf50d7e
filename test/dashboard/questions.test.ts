/** The questions that people ask of a dashboard at night, and how many clicks each answer may cost. */
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { endOfSuite } from "../support/end-of-suite.js";
import { inBrowser } from "./support/browser.js";
import { settled, visit } from "./support/screens.js";
import { clicksOf } from "./support/watched-page.js";
import { serveWorld, type World } from "./support/world.js";

const pausedCount = 37;

inBrowser(() => {
  forEachStore(
    (kind) => {
      let world: World;
      const onEnd = endOfSuite();
      beforeAll(async () => {
        world = await serveWorld({ kind, onEnd });
      });

      const openRun = async (name: keyof World["runs"]): Promise<Page> => {
        const page = await world.open(`/runs/${world.runs[name]}`);
        await settled(page);
        return page;
      };

      test("why is it stuck: 0 clicks from the run", async () => {
        const answers = {
          waiting: /It waits for the signal “?"?approved/,
          retrying: /It waits for attempt 2 at step .charge./,
          sleeping: /It waits for the end of its sleep/,
          planned: /It has not started: it is planned for/,
          pausedByPerson: /until an operator resumes it: The customer called\./,
          pausedByError: /It has been paused at step .check_profile./,
          withoutWorker: /no live worker has workflow .forgotten./,
          executing: /It is being executed by worker .worker-1./,
        } as const;
        const page = await openRun("waiting");
        for (const [name, text] of Object.entries(answers)) {
          await visit(page, `/runs/${world.runs[name as keyof typeof answers]}`);
          await page.getByRole("main").getByText(text).first().waitFor();
        }
      });

      test("the failing step with its cause and stack: 1 click", async () => {
        const page = await openRun("failed");
        const clicks = await clicksOf(page, async () => {
          await page.getByRole("button", { name: "Cause and stack" }).click();
          await page.getByText("Shelf 77 is not one of 1 to 60").waitFor();
          await page
            .getByText(/at ship \(.*world\.ts/)
            .first()
            .waitFor();
        });
        expect(clicks).toBe(1);
      });

      test("the input that made it fail: 1 click", async () => {
        const page = await openRun("failed");
        const clicks = await clicksOf(page, async () => {
          await page.getByRole("link", { name: "Input" }).click();
          await page.getByRole("region", { name: "Input" }).getByText('"BROKEN"').waitFor();
        });
        expect(clicks).toBe(1);
      });

      test("the same run as a command: 1 click, or 2 with the menu closed", async () => {
        const page = await openRun("failed");
        const clicks = await clicksOf(page, async () => {
          await page.keyboard.press(".");
          await page.getByRole("menuitem", { name: "Copy as a command" }).click();
          await expect
            .poll(() => page.evaluate("navigator.clipboard.readText()"))
            .toBe(`pawl show ${world.runs.failed}`);
        });
        expect(clicks).toBe(1);
      });

      test("which worker has it: named on the page of the run, and 1 click to what else it has", async () => {
        const page = await openRun("executing");
        const clicks = await clicksOf(page, async () => {
          await page
            .getByRole("main")
            .getByText(/executed by worker .worker-1./)
            .waitFor();
          await page.getByRole("navigation").getByRole("link", { name: "Workers" }).click();
          await page.getByRole("main").getByText("worker-1").first().waitFor();
        });
        expect(clicks).toBe(1);
      });

      test("what changed since yesterday: 2 clicks from anywhere", async () => {
        const page = await openRun("executing");
        const clicks = await clicksOf(page, async () => {
          await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Home" }).click();
          await page.getByRole("link", { name: "Since yesterday", exact: true }).click();
          await page.getByRole("table", { name: "What changed" }).getByText("24 hours before").waitFor();
        });
        expect(clicks).toBe(2);
      });

      test("what will run next: 1 click from anywhere, and 1 more to the run", async () => {
        const page = await openRun("executing");
        const next = page.getByRole("region", { name: "Runs next" });
        const clicks = await clicksOf(page, async () => {
          await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Home" }).click();
          await next.getByText("reminder").first().waitFor();
        });
        expect(clicks).toBe(1);
        await next
          .getByRole("link", { name: /reminder/ })
          .first()
          .click();
        await page.waitForURL(`**/runs/${world.runs.sleeping}`);
      });

      test("from the parent to a child, and back: 1 click each", async () => {
        const page = await openRun("parent");
        const children = page.getByRole("region", { name: "Children" });
        const down = await clicksOf(page, async () => {
          await children.getByRole("link", { name: /^…/ }).first().click();
          await page.getByRole("heading", { level: 1, name: "report_part" }).waitFor();
        });
        const up = await clicksOf(page, async () => {
          await page
            .getByRole("main")
            .getByRole("link", { name: `…${world.runs.parent.slice(-8)}` })
            .first()
            .click();
          await page.getByRole("heading", { level: 1, name: "nightly_report" }).waitFor();
        });
        expect([down, up]).toEqual([1, 1]);
      });

      test("a retry with a reason, and its visible outcome: 3 clicks", async () => {
        const page = await openRun("failedGraph");
        const clicks = await clicksOf(page, async () => {
          await page.getByRole("button", { name: "Retry" }).click();
          const dialog = page.getByRole("dialog", { name: "Retry: checkout" });
          await dialog.getByLabel("Reason").fill("The limit was raised.");
          await dialog.getByRole("button", { name: "Retry" }).click();
          await page.getByText("A new run was started.").waitFor();
          await page.getByText("Retry of").waitFor();
        });
        expect(clicks).toBeLessThanOrEqual(3);
        expect(new URL(page.url()).pathname).not.toContain(world.runs.failedGraph);
      });

      test("a signal with a reason, and its visible outcome: 3 clicks", async () => {
        const page = await openRun("waiting");
        const clicks = await clicksOf(page, async () => {
          await page.getByRole("button", { name: "Signal", exact: true }).click();
          const dialog = page.getByRole("dialog", { name: "Signal: order" });
          await dialog.getByLabel("Payload").fill('{ "by": "ada" }');
          await dialog.getByLabel("Reason").fill("The customer called.");
          await dialog.getByRole("button", { name: "Send the signal" }).click();
          await page.getByText("The signal “approved” was accepted.").waitFor();
          await page.getByRole("main").getByText("completed", { exact: true }).first().waitFor();
        });
        expect(clicks).toBeLessThanOrEqual(3);
        expect(await world.pawl.run(world.runs.waiting).result()).toMatchObject({ approvedBy: "ada" });
      });

      test(`from Home's number of paused runs to that list: 1 click`, async () => {
        const { Onboarding } = world.workflows;
        const before = (await world.pawl.counts()).total.paused;
        for (let n = before; n < pausedCount; n++) {
          const run = await world.pawl.start(Onboarding, undefined, {
            hero: { type: "User", id: String(3_000 + 3 * n) },
          });
          await world.reaches(run.id, "paused");
        }
        const page = await world.open("/");
        await settled(page);
        const clicks = await clicksOf(page, async () => {
          await page
            .getByRole("main")
            .getByRole("link", { name: /\b37\b.*paused|paused.*\b37\b/i })
            .first()
            .click();
          await page.waitForURL(/\/runs\?.*paused/);
          await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
          await page
            .getByText(/User \d+ has no address/)
            .first()
            .waitFor();
        });
        expect(clicks).toBe(1);
      });
    },
    // The other files use SQLite.
    ["postgres"] as const,
  );
});
