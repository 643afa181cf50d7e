/** What the dashboard says when something is missing: the server, the login, permissions, workers, data. */
import { workflow } from "pawl";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { inBrowser, patienceMs } from "./support/browser.js";
import { scrollsSideways, settled, visit } from "./support/screens.js";
import { takeScreenshot } from "./support/screenshots.js";
import { serveDashboard } from "./support/served-dashboard.js";
import { serveWorld } from "./support/world.js";

const note = (page: Page) => page.getByRole("alert");
const connectionErrors = [/ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED/];

inBrowser(() => {
  test("a lost connection is said, what is known stays, and the page recovers by itself", async () => {
    const world = await serveWorld();
    const page = await world.open(`/runs/${world.runs.waiting}`, { expected: connectionErrors });
    await settled(page);
    await world.close();
    await note(page).getByText("The connection to the server is lost").waitFor();
    await takeScreenshot(page, "state-lost-connection");
    await page.getByRole("tab", { name: "Timeline" }).waitFor();
    await world.reopen();
    await note(page).waitFor({ state: "hidden" });
    await settled(page);
  });

  test("an expired login is said, and a new one continues", async () => {
    let isSignedIn = true;
    const world = await serveWorld({ authorize: () => (isSignedIn ? { user: "ada", access: "all" } : null) });
    const page = await world.open(`/runs/${world.runs.waiting}`, { expected: [/401/] });
    await settled(page);
    isSignedIn = false;
    // The page is told that something has changed, and reads it.
    await world.pawl.run(world.runs.executing).signal("approved");
    await note(page).getByText("Your login has expired").waitFor();
    await takeScreenshot(page, "state-expired-login");
    await expect.poll(() => world.openStreams.size, { timeout: patienceMs }).toBe(0);
    isSignedIn = true;
    await note(page).getByRole("button", { name: "Load again" }).click();
    await settled(page);
    expect(await note(page).count()).toBe(0);
    expect(new URL(page.url()).pathname).toBe(`/runs/${world.runs.waiting}`);
  });

  test("a login page in place of an answer counts as an expired login", async () => {
    let isSignedIn = true;
    const loginPage = () => new Response("<h1>Sign in</h1>", { headers: { "Content-Type": "text/html" } });
    const world = await serveWorld({ authorize: () => (isSignedIn ? { user: "ada", access: "all" } : loginPage()) });
    const page = await world.open(`/runs/${world.runs.waiting}`, { expected: [/EventSource's response has a MIME/] });
    await settled(page);
    isSignedIn = false;
    await world.pawl.run(world.runs.executing).signal("approved");
    await note(page).getByText("Your login has expired").waitFor();
  });

  test("without a login there is no page, and nothing of the dashboard", async () => {
    const { open } = await serveDashboard({ authorize: () => null });
    const page = await open("/runs", { expected: [/401/] });
    await page.getByText("UNAUTHORIZED").waitFor();
    expect(await page.locator("script").count()).toBe(0);
  });

  test("an access that allows nothing gets no page", async () => {
    const { open } = await serveDashboard({ authorize: () => ({ user: "eve", access: "everything" as "all" }) });
    const page = await open("/runs", { expected: [/404|403/] });
    await page.getByText(/FORBIDDEN|NOT_FOUND/).waitFor();
    expect(await page.locator("script").count()).toBe(0);
  });

  test("read-only access is named, and no action is enabled", async () => {
    const world = await serveWorld({ authorize: () => ({ user: "eve", access: "read" }) });
    const page = await world.open(`/runs/${world.runs.pausedByError}`);
    await page.getByText("read only", { exact: true }).waitFor();
    await settled(page);
    const main = page.getByRole("main");
    for (const name of ["Resume", "Signal"])
      expect(await main.getByRole("button", { name, exact: true }).isDisabled(), name).toBe(true);
    await main.getByRole("button", { name: "More actions" }).click();
    for (const name of [/^Skip the step/, /^Cancel/])
      expect(await page.getByRole("menuitem", { name }).isDisabled()).toBe(true);
    await takeScreenshot(page, "state-read-only");
    await page.keyboard.press("Escape");
    await page.keyboard.press("c");
    await page.getByRole("status").getByText("Your access lacks “cancel”").waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("without access to payloads, values are said to be hidden, and nothing of them is in the page", async () => {
    const world = await serveWorld({ authorize: () => ({ user: "eve", access: ["pause", "resume"] }) });
    const page = await world.open(`/runs/${world.runs.failed}?tab=data`);
    await settled(page);
    await page
      .getByText(/your access does not include payloads/)
      .first()
      .waitFor();
    await takeScreenshot(page, "state-hidden-payloads");
    for (const path of ["", "?tab=log", "?tab=data", "?step=ship", "?tab=messages"]) {
      await visit(page, `/runs/${world.runs.failed}${path}`);
      expect(await page.getByRole("main").textContent(), path).not.toMatch(/BROKEN|Shelf 77|finance/);
    }
    await visit(page, "/errors");
    expect(await page.getByRole("main").textContent()).not.toMatch(/BROKEN|Shelf 77/);
  });

  test("values of a type that this version does not know are said to be unreadable, and the rest is shown", async () => {
    const world = await serveWorld();
    await world.damageInput(world.runs.completed);
    const page = await world.open(`/runs/${world.runs.completed}?tab=data`);
    await settled(page);
    await page
      .getByRole("region", { name: "Input" })
      .getByText(/cannot be read/)
      .waitFor();
    await takeScreenshot(page, "state-unreadable-input");
    await page.getByRole("region", { name: "Output" }).getByText("finance").waitFor();
    await visit(page, "/runs");
    await page.getByRole("link", { name: `order run …${world.runs.completed.slice(-8)}` }).waitFor();
  });

  test("without a worker, the run says so, and so does Home", async () => {
    const order = workflow("order", async () => {});
    const { open, pawl } = await serveDashboard({ registered: [order], hasWorker: false });
    await pawl.createWorkflow("order");
    const { id } = await pawl.workflow("order").trigger({});
    const page = await open(`/runs/${id}`);
    await page
      .getByText(/no live worker has workflow .order./)
      .first()
      .waitFor();
    await takeScreenshot(page, "state-no-worker");
    await visit(page, "/");
    await page
      .getByRole("region", { name: "Needs a person" })
      .getByText(/worker/i)
      .first()
      .waitFor();
    await visit(page, "/workers");
    await page
      .getByRole("main")
      .getByText(/no worker/i)
      .first()
      .waitFor();
  });

  test("on an empty database, every screen says what to do next and fits a phone", async () => {
    const { open } = await serveDashboard();
    const wide = await open("/");
    await settled(wide);
    await takeScreenshot(wide, "state-empty-database");
    const page = await open("/", { width: 390, height: 844 });
    for (const path of [
      "/",
      "/runs",
      "/workflows",
      "/errors",
      "/queues",
      "/limits",
      "/schedules",
      "/workers",
      "/database",
    ]) {
      await visit(page, path);
      expect(await scrollsSideways(page), path).toBe(false);
    }
  });
});
