/** Live updates: one stream for each page, closed while nobody looks, replaced by polling while it is broken. */
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
