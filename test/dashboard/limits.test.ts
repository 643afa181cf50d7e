/** The screens of limits: the list, the page of a limit, overrides, and the explanation of a run that waits. */
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { endOfSuite } from "../support/end-of-suite.js";
import { until } from "../support/waiting.js";
import { problemsInAllLooks } from "./support/accessibility.js";
import { inBrowser } from "./support/browser.js";
import { type LimitWorld, overrideOpenai, serveLimits } from "./support/limit-world.js";
import { scrollsSideways, settled, visit } from "./support/screens.js";
import { serveDashboard } from "./support/served-dashboard.js";

const main = (page: Page) => page.getByRole("main");
const button = (page: Page, name: string) => main(page).getByRole("button", { name, exact: true });
const rowOf = (page: Page, name: string) =>
  page
    .getByRole("table", { name: "Limits" })
    .getByRole("row")
    .filter({ has: page.getByRole("link", { name, exact: true }) });
const keyRow = (page: Page, key: string) =>
  page
    .getByRole("table", { name: "Keys" })
    .getByRole("row")
    .filter({ has: page.getByRole("cell", { name: key, exact: true }) });
const cellsOf = async (row: ReturnType<typeof rowOf>) =>
  (await row.getByRole("cell").allTextContents()).map((text) => text.trim());

inBrowser(() => {
  let world: LimitWorld;
  const onEnd = endOfSuite();
  beforeAll(async () => {
    world = await serveLimits({ onEnd, authorize: () => ({ user: "ada", access: "all" }) });
    await overrideOpenai(world);
  });
  const open = async (path: string, options: Parameters<LimitWorld["open"]>[1] = {}) => {
    const page = await world.open(path, options);
    await settled(page);
    return page;
  };

  test("the list says what each limit allows, what is in use and what waits, those that are waited for first", async () => {
    const page = await open("/limits");
    const names = (await page.locator("a[data-limit]").allTextContents()).map((text) => text.trim());
    expect(names).toEqual(["mail_provider", "one_migration_per_customer", "per_tenant", "legacy_crm", "openai"]);
    expect((await cellsOf(rowOf(page, "per_tenant"))).slice(1)).toEqual(["2 at a time", "6", "9", "none"]);
    expect((await cellsOf(rowOf(page, "mail_provider"))).slice(1, 4)).toEqual(["2 an hour, 1 more at once", "0", "2"]);
    const openai = await cellsOf(rowOf(page, "openai"));
    expect(openai.slice(1, 4)).toEqual([
      "3 at a time10,000 a minutecode: 60 at a time, 90,000 a minute, 500 more at once",
      "6",
      "0",
    ]);
    expect(openai[4]).toMatch(/^ends in 1 h 5\d m.*by ada: They answer with 429/);
    await rowOf(page, "one_migration_per_customer").getByText("held until the end of a run").waitFor();
    await rowOf(page, "legacy_crm").getByText("when full, 100 may wait, further runs are skipped").waitFor();
  });

  test("the page of a limit has its keys with links to the runs that hold their slots, and one key by its address", async () => {
    const page = await open("/limits/per_tenant", { expected: [/404/] });
    expect(await page.locator("[data-part=allows]").textContent()).toBe("Allows 2 at a time for each key");
    const acme = keyRow(page, "acme");
    expect((await cellsOf(acme))[1]).toBe("2 of 2");
    expect((await cellsOf(acme)).slice(3)).toEqual(["9", "when a slot is free"]);
    const links = await acme.getByRole("link").evaluateAll((all) => all.map((one) => String(one.getAttribute("href"))));
    expect(links.map((link) => link.split("/").at(-1)).sort()).toEqual([...world.holders].sort());
    await keyRow(page, "wayne/eu").waitFor();
    await visit(page, `/limits/per_tenant?key=${encodeURIComponent("wayne/eu")}`);
    await page.getByRole("heading", { name: "1 key", exact: true }).waitFor();
    await page.getByLabel("Key", { exact: true }).fill("nothing such");
    await page.keyboard.press("Enter");
    await page.getByText("Nothing of “nothing such” is in use or waits").waitFor();
    await main(page).getByRole("button", { name: "Show all keys" }).first().click();
    await keyRow(page, "globex").waitFor();
    await visit(page, "/limits/mail_provider");
    await page.getByRole("heading", { name: "Slots", exact: true }).waitFor();
    await page.getByText(/^in \d+ m/).waitFor();
    await visit(page, "/limits/legacy_crm");
    await page.getByText("No slot is in use, and nothing waits").waitFor();
    await visit(page, "/limits/none");
    await page.getByText("There is no such limit").waitFor();
  });

  test("a run that waits says for which limit, and leads there in one click", async () => {
    const page = await open(`/runs/${world.waiting[0]}`);
    const why = page.locator("[data-part=why]");
    const sentence =
      /It waits for a free slot of the limit per_tenant, key “acme”\. 2 of 2 in use, by …\w+, …\w+\. It is (next|number \d of 9 that wait)\./;
    await why.filter({ hasText: sentence }).waitFor();
    const links = await why.getByRole("link").evaluateAll((all) => all.map((one) => String(one.getAttribute("href"))));
    expect(
      links
        .slice(1)
        .map((link) => link.split("/").at(-1))
        .sort(),
    ).toEqual([...world.holders].sort());
    await why.getByRole("link", { name: "per_tenant" }).click();
    await page.waitForURL("**/limits/per_tenant?key=acme");
    await keyRow(page, "acme").waitFor();
  });

  test("the keyboard walks through the list, opens a limit and overrides it", async () => {
    const page = await open("/");
    for (const key of ["g", "l"]) await page.keyboard.press(key);
    await rowOf(page, "per_tenant").waitFor();
    for (const key of ["j", "j", "j"]) await page.keyboard.press(key);
    await page.locator("a:focus").getByText("per_tenant").waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "per_tenant" }).waitFor();
    await page.keyboard.press("o");
    await page.getByRole("dialog", { name: "Override: per_tenant" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Find anything" }).fill("openai limit");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/limits/openai");
  });

  test("the screens are accessible, dark, light and on a phone", async () => {
    const page = await open("/limits", { bypassesCsp: true });
    const addresses = ["/limits", "/limits/per_tenant", "/limits/openai?do=override", "/limits/openai?do=clear"];
    for (const [index, address] of addresses.entries()) {
      await visit(page, address);
      expect(await problemsInAllLooks(page, index), address).toEqual([]);
    }
  });
});

inBrowser(() => {
  test("an override has values, an end and a reason, is shown when the server has it, and is cleared", async () => {
    const world = await serveLimits({ authorize: () => ({ user: "ada", access: "all" }) });
    const page = await world.open("/limits/per_tenant");
    await settled(page);
    await button(page, "Override").click();
    const dialog = page.getByRole("dialog", { name: "Override: per_tenant" });
    const confirm = dialog.getByRole("button", { name: "Override the limit" });
    await dialog.getByLabel("Slots for each key").fill("0");
    await dialog.getByText("A whole number of at least 1. To stop runs, pause their queue.").waitFor();
    expect(await confirm.isDisabled()).toBe(true);
    await dialog.getByLabel("Slots for each key").fill("1");
    await dialog.getByText(/^Lowered: nothing begins for a key that holds more than 1/).waitFor();
    await dialog.getByLabel("The override ends").selectOption("8 hours");
    await dialog.getByLabel("Reason").fill("The replica lags.");
    await dialog.getByText("The same on the command line and in TypeScript").click();
    await dialog.getByText(`pawl limits override per_tenant --concurrency 1 --until '8 hours' --reason "…"`).waitFor();
    await confirm.click();
    const note = page.locator("[data-part=override]");
    await note
      .getByText(
        /^Overridden by ada.*: The replica lags\. It ends by itself in 7 h 59 m.* The code allows 2 at a time\.$/,
      )
      .waitFor();
    expect((await world.pawl.limits.list()).find(({ name }) => name === "per_tenant")).toMatchObject({
      concurrency: 2,
      inForce: { concurrency: 1 },
      override: { by: "ada", reason: "The replica lags." },
    });
    await keyRow(page, "acme").getByText("2 of 1, lowered since").waitFor();
    // Another person clears it meanwhile, and the dialog says so.
    await page.keyboard.press("c");
    const clear = page.getByRole("dialog", { name: "Clear the override: per_tenant" });
    await clear
      .getByText("The values of the code are in force at once: 2 at a time, in place of 1 at a time.")
      .waitFor();
    await clear.getByRole("button", { name: "Clear the override" }).click();
    await note.waitFor({ state: "detached" });
    expect((await world.pawl.limits.list()).find(({ name }) => name === "per_tenant")?.override).toBeNull();
  });

  test("what the page shows follows the runs: slots are given back, and those that waited hold them", async () => {
    const world = await serveLimits();
    const page = await world.open("/limits/per_tenant");
    await settled(page);
    await keyRow(page, "acme").getByText("2 of 2").waitFor();
    world.release();
    await page.getByText("No slot is in use, and nothing waits").waitFor();
    await until(async () => (await world.pawl.limits.get("per_tenant"))?.inUse === 0);
  });

  test("without the permission nothing can be overridden, and the page says what is lacking", async () => {
    const world = await serveLimits({ authorize: () => ({ user: "eve", access: "read" }) });
    const page = await world.open("/limits/per_tenant?do=override");
    await settled(page);
    const dialog = page.getByRole("dialog", { name: "Override: per_tenant" });
    await dialog.getByText("You may not do this: your access lacks “limits”.").waitFor();
    expect(await dialog.getByRole("button", { name: "Override the limit" }).isDisabled()).toBe(true);
    await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
    expect(await button(page, "Override").isDisabled()).toBe(true);
  });

  test("a database without limits says how to make one, also on a phone; a refusal says why", async () => {
    const { open } = await serveDashboard();
    const page = await open("/limits", { width: 390, height: 844, expected: [/503/] });
    await page.getByRole("heading", { name: "There are no limits yet" }).waitFor();
    expect(await scrollsSideways(page)).toBe(false);
    await page.route("**/api/v1/limits*", (route) =>
      route.fulfill({
        status: 503,
        contentType: "application/problem+json",
        body: JSON.stringify({ status: 503, code: "UNAVAILABLE", detail: "The database cannot be reached." }),
      }),
    );
    await page.reload();
    await page.getByText("The database cannot be reached.").first().waitFor();
  });
});
