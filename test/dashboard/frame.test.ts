/** The frame of every screen: navigation, shortcuts, palette, choices of the person, and how the server presents it. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { inBrowser } from "./support/browser.js";
import { navigation, runTabs, settled } from "./support/screens.js";
import { serveDashboard } from "./support/served-dashboard.js";
import { serveWorld } from "./support/world.js";

const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name, exact: true });

const press = async (page: Page, keys: string) => {
  for (const key of keys.split(" ")) await page.keyboard.press(key);
};

inBrowser(() => {
  test("each screen is reached by its link and by its keys, and the browser goes back", async () => {
    const { open, url } = await serveDashboard();
    const page = await open();
    const screens = page.getByRole("navigation", { name: "Screens" });
    for (const { name, path } of navigation) {
      await screens.getByRole("link", { name, exact: true }).click();
      await heading(page, name).waitFor();
      expect([page.url(), await page.title()]).toEqual([url + path, `${name} · Pawl`]);
      await screens.locator("[aria-current=page]").getByText(name, { exact: true }).waitFor();
    }
    for (const { name, keys } of navigation) {
      await press(page, keys);
      await heading(page, name).waitFor();
    }
    await page.goBack();
    await heading(page, "Workers").waitFor();
  });

  test("the first key of the keyboard skips the navigation", async () => {
    const { open } = await serveDashboard();
    const page = await open("/workers");
    await heading(page, "Workers").waitFor();
    await page.keyboard.press("Tab");
    await page.getByRole("link", { name: "Skip to the content" }).waitFor();
    await page.keyboard.press("Enter");
    await page.locator("main:focus").waitFor();
    await heading(page, "Workers").waitFor();
  });

  test("an address without a screen says so, and leads back", async () => {
    const { open } = await serveDashboard();
    const page = await open("/no/such/page");
    await heading(page, "There is no such page").waitFor();
    await page.getByRole("link", { name: "Go to the start page" }).click();
    await heading(page, "Home").waitFor();
  });

  test("the palette opens screens, workflows and runs by their ids, by keyboard alone", async () => {
    const world = await serveWorld();
    const page = await world.open();
    await heading(page, "Home").waitFor();
    const palette = page.getByRole("dialog", { name: "Find anything" });
    const find = async (text: string) => {
      await page.keyboard.press("Control+k");
      await palette.waitFor();
      await page.keyboard.type(text);
    };

    await find("workers");
    await palette.getByRole("option", { name: "Workers g k" }).waitFor();
    await page.keyboard.press("Enter");
    await heading(page, "Workers").waitFor();
    await palette.waitFor({ state: "hidden" });

    await find("checkout");
    await palette.getByRole("option", { name: "checkout workflow", exact: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL("**/workflows/checkout");

    await find(world.runs.waiting.toUpperCase());
    await palette.getByRole("option", { name: "Open run" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/runs/${world.runs.waiting}`);

    await find("paused");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/runs?q=status%3Apaused");

    await find("zzz");
    await palette.getByRole("option", { name: "Search runs for “zzz”" }).waitFor();
    await page.keyboard.press("Escape");
    await palette.waitFor({ state: "hidden" });
  });

  test("the question mark lists the shortcuts, and Escape closes the list", async () => {
    const { open } = await serveDashboard();
    const page = await open("/runs");
    await heading(page, "Runs").waitFor();
    await page.keyboard.press("?");
    const help = page.getByRole("dialog", { name: "Keyboard" });
    await help.getByText("Go to Workflows").waitFor();
    // A dialog has the keyboard to itself.
    await press(page, "g w");
    await help.waitFor();
    await page.keyboard.press("Escape");
    await help.waitFor({ state: "hidden" });
    await press(page, "g w");
    await heading(page, "Workflows").waitFor();
  });

  test("colours and the way times are written are remembered", async () => {
    const { open } = await serveDashboard();
    const page = await open();
    const theme = () => page.evaluate("document.documentElement.dataset.theme ?? null");
    await page.getByRole("button", { name: "Colours: system" }).click();
    await page.getByRole("button", { name: "Colours: light" }).click();
    await page.getByRole("button", { name: "Times: Relative" }).click();
    await page.getByRole("button", { name: "Times: Local time" }).click();
    expect(await theme()).toBe("dark");
    await page.reload();
    await page.getByRole("button", { name: "Colours: dark" }).waitFor();
    await page.getByRole("button", { name: "Times: UTC" }).waitFor();
    expect(await theme()).toBe("dark");
  });

  test("the environment, the title and the user are shown", async () => {
    const { open } = await serveDashboard({
      dashboard: { label: "production <eu>", title: 'Shop "workflows"' },
      authorize: () => ({ user: "ada", access: "all" }),
    });
    const page = await open();
    await page.getByText("production <eu>", { exact: true }).waitFor();
    await page.getByText("ada", { exact: true }).waitFor();
    await page.getByRole("link", { name: 'Shop "workflows": start page' }).waitFor();
    await expect.poll(() => page.title()).toBe('Home · Shop "workflows"');
  });

  test("the tabs of a run are chosen by mouse and arrow keys, and are in the address", async () => {
    const { open, runs } = await serveWorld();
    const page = await open(`/runs/${runs.waiting}`);
    await settled(page);
    const tab = (name: string) => page.getByRole("tab", { name, exact: false });
    for (const name of runTabs.slice(1)) {
      await tab(name).click();
      await page.waitForURL(`**/runs/${runs.waiting}?tab=${name.toLowerCase()}`);
    }
    // The first tab is that of the plain address.
    await tab("Timeline").click();
    await page.waitForURL(`**/runs/${runs.waiting}`);
    await page.keyboard.press("ArrowRight");
    await page.waitForURL(`**?tab=${runTabs[1].toLowerCase()}`);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await page.waitForURL(`**?tab=${runTabs.at(-1)?.toLowerCase()}`);
  });

  test("a run that does not exist is said not to exist", async () => {
    const { open } = await serveDashboard();
    const page = await open("/runs/019a0000-0000-7000-8000-000000000000", { expected: [/404/] });
    await page.getByRole("main").getByText("There is no such run").first().waitFor();
    await page.getByRole("link", { name: "See all runs" }).click();
    await heading(page, "Runs").waitFor();
  });
});
