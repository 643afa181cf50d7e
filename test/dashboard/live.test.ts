/** Live updates: one stream for each page, closed while nobody looks, replaced by polling while it is broken. */
import { workflow } from "pawl";
import { expect, test } from "vitest";
import { inBrowser, patienceMs } from "./support/browser.js";
import { settled } from "./support/screens.js";
import { serveDashboard } from "./support/served-dashboard.js";

const becomes = { timeout: patienceMs };

inBrowser(() => {
  test("a page holds one stream, also after it has shown several screens", async () => {
    const { open, openStreams } = await serveDashboard();
    const page = await open("/runs");
    await settled(page);
    for (const name of ["Workers", "Errors", "Home"]) {
      await page.getByRole("navigation").getByRole("link", { name }).click();
      await page.getByRole("heading", { level: 1, name }).waitFor();
    }
    expect(openStreams.size).toBe(1);
    await page.close();
    await expect.poll(() => openStreams.size, becomes).toBe(0);
  });

  test("the switch closes the stream, and opens it again", async () => {
    const { open, openStreams } = await serveDashboard();
    const page = await open("/runs");
    await settled(page);
    await page.getByRole("button", { name: "Live", exact: true }).click();
    await page.getByRole("button", { name: "Updates off" }).waitFor();
    await expect.poll(() => openStreams.size, becomes).toBe(0);
    await page.getByRole("button", { name: "Updates off" }).click();
    await page.getByRole("button", { name: "Live", exact: true }).waitFor();
    expect(openStreams.size).toBe(1);
  });

  test("a hidden page closes its stream, and reads again when it is seen", async () => {
    const { open, openStreams } = await serveDashboard();
    const page = await open("/runs");
    await settled(page);
    // Chromium without a screen takes every page for visible.
    const show = (visibility: string) =>
      page.evaluate(`
        Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "${visibility}" });
        document.dispatchEvent(new Event("visibilitychange"));
      `);
    await show("hidden");
    await expect.poll(() => openStreams.size, becomes).toBe(0);
    await show("visible");
    await page.getByRole("button", { name: "Live", exact: true }).waitFor();
    expect(openStreams.size).toBe(1);
  });

  test("new runs are counted above the list, and no row moves until they are asked for", async () => {
    const quick = workflow("quick", async () => {});
    const { open, pawl } = await serveDashboard({ registered: [quick] });
    await pawl.startMany(quick, [undefined, undefined, undefined]);
    const page = await open("/runs");
    await settled(page);
    const rows = page.getByRole("rowgroup", { name: "Runs" }).getByRole("row");
    await expect.poll(() => rows.count(), becomes).toBe(3);
    const before = await rows.allTextContents();
    await pawl.startMany(quick, [undefined, undefined]);
    const fresh = page.getByRole("button", { name: "2 new" });
    await fresh.waitFor();
    expect(await rows.count()).toBe(before.length);
    await fresh.click();
    await expect.poll(() => rows.count(), becomes).toBe(5);
    await fresh.waitFor({ state: "hidden" });

    // Switched off, the page stays as it is until updates are switched on again.
    await page.getByRole("button", { name: "Live", exact: true }).click();
    await page.getByRole("button", { name: "Updates off" }).waitFor();
    await pawl.startMany(quick, [undefined]);
    await page.getByRole("button", { name: "Updates off" }).click();
    await page.getByRole("button", { name: "1 new" }).waitFor();
  });

  test("a page that gets no stream polls", async () => {
    const { open, openStreams } = await serveDashboard({ maxStreams: 1 });
    const first = await open("/runs");
    await settled(first);
    const second = await open("/runs", { expected: [/503/] });
    await second.getByRole("button", { name: "Every 5 s" }).waitFor();
    await first.close();
    await second.getByRole("button", { name: "Live", exact: true }).waitFor();
    await expect.poll(() => openStreams.size, becomes).toBe(1);
  });
});
