/** A whole story, as an operator lives it: a run fails, is found, understood, retried and continued. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { isAmong } from "../support/effort.js";
import { inBrowser } from "./support/browser.js";
import { scrollsSideways, settled } from "./support/screens.js";
import { serveWorld, type World } from "./support/world.js";

/** The run that the story is about was retried by a person, and the retry waits for the same step again. */
async function expectRetried(world: World, page: Page, reason: string): Promise<void> {
  const retryId = new URL(page.url()).pathname.split("/").at(-1) as string;
  expect(retryId).not.toBe(world.runs.failedGraph);
  const retry = await world.pawl.run(retryId).get();
  expect([retry.retryOf, retry.startedBy?.reason ?? null]).toEqual([world.runs.failedGraph, reason]);
}

inBrowser(() => {
  forEachStore(
    (kind) => {
      for (const [device, width, height] of [
        ["a wide screen", 1280, 800],
        ["a phone of 390 pixels", 390, 844],
      ] as const)
        test(`from Home to the failed run, its cause and its retry, on ${device}`, async () => {
          const world = await serveWorld({ kind });
          const page = await world.open("/", { width, height });
          await settled(page);
          const attention = page.getByRole("region", { name: "Needs a person" });
          await attention
            .getByRole("link", { name: /The limit of the account is 900|PermanentError.*pay|pay/ })
            .first()
            .click();
          await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
          expect(await scrollsSideways(page)).toBe(false);
          await page
            .getByRole("link", { name: /^checkout run/ })
            .first()
            .click();
          await page.waitForURL(`**/runs/${world.runs.failedGraph}`);
          await page.getByText("The limit of the account is 900").first().waitFor();
          await page.getByRole("button", { name: "Cause and stack" }).click();
          await page
            .getByText(/world\.ts/)
            .first()
            .waitFor();
          expect(await scrollsSideways(page)).toBe(false);
          await page.getByRole("button", { name: /^Close the step/ }).click();
          await page.getByRole("main").getByRole("button", { name: "Retry" }).click();
          const dialog = page.getByRole("dialog", { name: "Retry: checkout" });
          await dialog.getByLabel("Reason").fill("The limit was raised.");
          expect(await scrollsSideways(page)).toBe(false);
          await dialog.getByRole("button", { name: "Retry" }).click();
          await page.getByText("Retry of").waitFor();
          await expectRetried(world, page, "The limit was raised.");
        });

      test("the same by keyboard alone", async () => {
        const world = await serveWorld({ kind });
        const page = await world.open("/");
        await settled(page);
        const press = async (...keys: string[]) => {
          for (const key of keys) await page.keyboard.press(key);
        };
        await press("g", "r");
        await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
        await press("/");
        await page.locator("input:focus").waitFor();
        await page.keyboard.type("workflow:checkout status:failed");
        await press("Enter");
        await page.waitForURL(/q=workflow/);
        await settled(page);
        await page.getByRole("link", { name: /^checkout run/ }).waitFor();
        // The search keeps the keyboard until Escape or Tab leaves it.
        await press("Escape");
        await page.evaluate("document.activeElement?.blur?.()");
        await press("j");
        await page.locator("a:focus").getByText("checkout").waitFor();
        await press("Enter");
        await page.waitForURL(`**/runs/${world.runs.failedGraph}`);
        await settled(page);
        await press("r");
        const dialog = page.getByRole("dialog", { name: "Retry: checkout" });
        await dialog.waitFor();
        const isAtReason = async () => (await dialog.locator("input:focus").count()) > 0;
        for (let tabs = 0; tabs < 10 && !(await isAtReason()); tabs++) await press("Tab");
        await page.keyboard.type("The limit was raised.");
        await press("Enter");
        await page.getByText("Retry of").waitFor();
        await expectRetried(world, page, "The limit was raised.");
      });
    },
    (["sqlite", "postgres"] as const).filter((kind) => isAmong(kind, "postgres")),
  );
});
