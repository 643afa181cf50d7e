/** Deep links, base paths and proxies. */
import { expect, test } from "vitest";
import { inBrowser, patienceMs } from "./support/browser.js";
import { everyAddress, settled, visit } from "./support/screens.js";
import { serveDashboard, stripPrefix } from "./support/served-dashboard.js";
import { openPage } from "./support/watched-page.js";
import { serveWorld } from "./support/world.js";

inBrowser(() => {
  test("every address shows the same after a reload", async () => {
    const world = await serveWorld();
    const page = await world.open();
    for (const address of everyAddress(world)) {
      await visit(page, address);
      // Times and durations grow meanwhile.
      const headings = () => page.getByRole("heading").allTextContents();
      const [before, url] = [await headings(), page.url()];
      await page.reload();
      await settled(page);
      await expect.poll(headings, { message: address, timeout: patienceMs }).toEqual(before);
      expect(page.url(), address).toBe(url);
    }
  });

  test("under a base path, links, files, requests and reloads stay below it", async () => {
    const { open, url } = await serveDashboard({ basePath: "/ops/pawl" });
    // Without the slash at the end, too.
    const page = await open("");
    await settled(page);
    await page.getByRole("navigation").getByRole("link", { name: "Workflows" }).click();
    await page.getByRole("heading", { level: 1, name: "Workflows" }).waitFor();
    expect(page.url()).toBe(`${url}/workflows`);
    await page.reload();
    await settled(page);
    await page.getByRole("heading", { level: 1, name: "Workflows" }).waitFor();
    await page.getByRole("link", { name: "Pawl: start page" }).click();
    await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
    expect(page.url()).toBe(`${url}/`);
  });

  test("behind a proxy that strips the base path, it works the same", async () => {
    const world = await serveWorld({ basePath: "/ops", authorize: () => ({ user: "ada", access: "all" }) });
    const url = await stripPrefix("/ops", world.url.replace("/ops", ""));
    const { page } = await openPage(`${url}/runs/${world.runs.waiting}?tab=log`);
    await settled(page);
    await page.getByRole("tab", { name: "Log", selected: true }).waitFor();
    await page.reload();
    await settled(page);
    await page.getByRole("tab", { name: "Log", selected: true }).waitFor();
    expect(page.url()).toBe(`${url}/runs/${world.runs.waiting}?tab=log`);
  });
});
