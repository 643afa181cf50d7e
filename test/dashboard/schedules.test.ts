/** The screens of schedules: the list, the page of each schedule, and where else schedules are shown. */
import type { Locator, Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { endOfSuite } from "../support/end-of-suite.js";
import { until } from "../support/waiting.js";
import { problemsInAllLooks } from "./support/accessibility.js";
import { inBrowser } from "./support/browser.js";
import { type ScheduleWorld, serveSchedules, writeNights, writeOthers, zone } from "./support/schedule-world.js";
import { settled, visit } from "./support/screens.js";

const main = (page: Page) => page.getByRole("main");
const standing = (page: Page) => page.locator("[data-part=standing]");
const strip = (page: Page) => page.getByRole("list", { name: "Outcomes, the oldest first" });
const ledger = (page: Page) => page.getByRole("table", { name: "Ledger" });
const rowOf = (page: Page, name: string) =>
  page
    .getByRole("table", { name: "Schedules" })
    .getByRole("row")
    .filter({ has: page.getByRole("link", { name, exact: true }) });
const textsOf = async (locator: Locator) => (await locator.allTextContents()).map((text) => text.trim());

inBrowser(() => {
  let world: ScheduleWorld;
  let nights: ReadonlyMap<number, string>;
  const onEnd = endOfSuite();
  beforeAll(async () => {
    world = await serveSchedules({ onEnd });
    nights = await writeNights(world);
    await writeOthers(world);
    // What the tests see must not change at half past two.
    await world.stopWorker();
  });
  const open = async (path: string) => {
    const page = await world.open(path);
    await settled(page);
    return page;
  };

  test("the list says of each schedule what it does, and shows late ones first", async () => {
    const page = await open("/schedules");
    const names = await textsOf(page.locator("a[data-schedule]"));
    expect(names[0]).toBe("billing_close");
    expect(names.slice(1)).toEqual([...names.slice(1)].sort());
    expect(names).toHaveLength(7);
    const nightly = rowOf(page, "nightly_report");
    for (const text of ["At 02:30 every day, Europe/Berlin", "30 2 * * *", "active", "ran", "shop"])
      await nightly.getByText(text, { exact: true }).first().waitFor();
    await nightly.getByText(/^in /).waitFor();
    const { nextFor } = await world.pawl.schedules.get("nightly_report");
    expect(await nightly.locator("time").first().getAttribute("datetime")).toBe(nextFor?.toISOString());
    expect(await nightly.getByRole("link", { name: /^ran.*open the run$/ }).getAttribute("href")).toMatch(
      nights.get(0) as string,
    );
    expect(await nightly.getByRole("link", { name: "report", exact: true }).getAttribute("href")).toMatch(
      /\/workflows\/report$/,
    );
    await rowOf(page, "billing_close")
      .getByText(/late by 2 h \d\d m$/)
      .waitFor();
    await rowOf(page, "press_check")
      .getByText(/resumes in 6 d 23 h$/)
      .waitFor();
    await rowOf(page, "import_prices").getByText("until resumed").waitFor();
    for (const [name, status] of [
      ["legacy_sync", "retired"],
      ["black_friday", "ended"],
    ] as const)
      await rowOf(page, name).locator(`[data-status=${status}]`).waitFor();
    expect(await main(page).locator("[data-part=late]").count()).toBe(1);
  });

  test("filters of the list are in the address", async () => {
    const page = await open("/schedules?status=paused");
    expect(await textsOf(page.locator("a[data-schedule]"))).toEqual(["import_prices", "press_check"]);
    await page.getByLabel("Status").selectOption("late");
    await page.waitForURL(/status=late/);
    expect(await textsOf(page.locator("a[data-schedule]"))).toEqual(["billing_close"]);
    await visit(page, "/schedules?app=shop");
    expect(await textsOf(page.locator("a[data-schedule]"))).toEqual(["legacy_sync", "nightly_report"]);
    await page.getByLabel("Name or workflow").fill("NIGHT");
    await page.waitForURL(/name=NIGHT/);
    expect(await textsOf(page.locator("a[data-schedule]"))).toEqual(["nightly_report"]);
    await page.getByLabel("Name or workflow").fill("no such name");
    await page.getByRole("button", { name: "Show all schedules" }).click();
    await rowOf(page, "customer-42").waitFor();
    expect(new URL(page.url()).search).toBe("");
  });

  test("the keyboard walks through the list and opens a schedule", async () => {
    const page = await open("/");
    for (const key of ["g", "s"]) await page.keyboard.press(key);
    await rowOf(page, "nightly_report").waitFor();
    for (const key of ["j", "j", "j", "k"]) await page.keyboard.press(key);
    await page.locator("a:focus").getByText("black_friday").waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "black_friday" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Find anything" }).fill("nightly sched");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/schedules/nightly_report");
  });

  test("the page of a schedule says how it is set", async () => {
    const page = await open("/schedules/nightly_report");
    expect(await page.locator("[data-part=rule]").textContent()).toBe("At 02:30 every day, Europe/Berlin");
    await standing(page)
      .getByText(/The next run starts in .*, for .* 02:30 Europe\/Berlin/)
      .waitFor();
    const settings = page.getByRole("region", { name: "Settings" });
    for (const text of [
      "report",
      "The application shop, whose code declares it.",
      "30 2 * * *",
      "Europe/Berlin",
      "skip While a run is open, occurrences are skipped.",
      "latest After downtime or a pause, one run for the latest occurrence that is at most 6 hours late.",
      "Up to 5 minutes, the same in every process.",
      "Paused after 5 failed runs in a row (0 now).",
      "Computed from the instant by the code of the schedule.",
    ])
      expect(await textsOf(settings.locator("dd"))).toContain(text);
    await visit(page, "/schedules/customer-42");
    await settings.getByText("The API: it belongs to no application, and any worker fires it.").waitFor();
    await settings.getByText("42", { exact: true }).waitFor();
  });

  test.each([
    [
      "press_check",
      /^Paused by ada .* ago: The press is being repaired\. It starts no runs and resumes by itself in 6 d 23 h/,
    ],
    [
      "import_prices",
      /^Paused .* ago: 3 runs in a row have failed\. It starts no runs until it is resumed\.3 runs in a row have failed$/,
    ],
    ["legacy_sync", /^Retired: the code of the application “shop” does not contain it any more/],
    ["black_friday", /^Ended: its rule has no further instants/],
    [
      "billing_close",
      /^It is late by 2 h \d\d m: .* has passed, and no live worker fires it\. Start a worker of the application “billing”\.$/,
    ],
  ])("the page of %s says why it starts no runs", async (name, text) => {
    const page = await open(`/schedules/${name}`);
    expect((await standing(page).textContent())?.replace(/See the workers$/, "")).toMatch(text);
  });

  test("the next ten occurrences are those of the schedule, and more are one click away", async () => {
    const page = await open("/schedules/nightly_report");
    const times = page.getByRole("table", { name: "Next occurrences" }).locator("time");
    const shown = () => times.evaluateAll((all) => all.map((time) => time.getAttribute("datetime")));
    const isoOf = (dates: readonly Date[]) => dates.map((date) => date.toISOString());
    const expected = isoOf(await world.pawl.schedules.next("nightly_report", 20));
    expect(await shown()).toEqual(expected.slice(0, 10));
    await page.getByRole("button", { name: "Later" }).click();
    await page.getByRole("region", { name: "Later occurrences" }).waitFor();
    await settled(page);
    expect(await shown()).toEqual(expected.slice(10));
    await page.reload();
    await settled(page);
    expect(await shown()).toEqual(expected.slice(10));
    await page.getByRole("button", { name: "From now" }).click();
    await page.getByRole("region", { name: "The next ten occurrences" }).waitFor();
  });

  test.each([
    [
      "2027-03-26",
      "Sun 2027-03-28 03:00",
      "The clocks go forward from 02:00 to 03:00, so local times in between do not exist. An occurrence in between runs at 03:00.",
    ],
    [
      "2027-10-29",
      "Sun 2027-10-31 02:30",
      "The clocks go back from 03:00 to 02:00, so local times in between occur twice. This is the first 02:30.",
    ],
  ])("a day on which the clocks change is marked and explained: %s", async (from, local, explanation) => {
    const page = await open(`/schedules/nightly_report?from=${from}T12:00:00Z`);
    const marked = page.locator("[data-transition=yes]");
    expect(await marked.count()).toBe(1);
    expect(await marked.locator("time").textContent()).toBe(local);
    await marked.getByText("clocks change").waitFor();
    await marked.getByText(explanation).waitFor();
  });

  test("the strip shows the last fifty outcomes, and each run is a link", async () => {
    const page = await open("/schedules/nightly_report");
    const cells = strip(page).locator("[data-outcome]");
    const { occurrences } = await world.pawl.schedules.occurrences("nightly_report", { limit: 50 });
    expect(await cells.count()).toBe(50);
    const links = await cells.evaluateAll((all) =>
      all.map((cell) => cell.getAttribute("href")?.split("/").at(-1) ?? null),
    );
    expect(links).toEqual(occurrences.map(({ runId }) => runId).reverse());
    for (const [age, label] of [
      [0, "completed"],
      [3, "run failed"],
    ] as const) {
      const at = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeZone: zone }).format(world.nights[age]);
      await strip(page)
        .getByRole("link", { name: new RegExp(`${at} 02:30: ${label}$`) })
        .waitFor();
    }
    await strip(page)
      .getByRole("img", { name: /skipped, too late, 3 occurrences$/ })
      .waitFor();
    const legend = page.getByRole("list", { name: "Legend" }).getByRole("listitem");
    expect((await textsOf(legend)).slice(1)).toEqual([
      "run failed 3",
      "failed to start 1",
      "skipped, a run was open 1",
      "skipped, too late 3",
      "not run, it was paused 2",
    ]);
    // Each outcome has a sign of its own, so that the colour is not all that tells them apart.
    const signs = await cells.evaluateAll((all) =>
      all.map((cell) => [cell.getAttribute("data-outcome"), cell.querySelector("path")?.getAttribute("d")]),
    );
    const bySign = new Map(signs.map(([outcome, sign]) => [sign, outcome]));
    expect(bySign.size).toBe(new Set(signs.map(([outcome]) => outcome)).size);
  });

  test("arrow keys move through the strip, and say what they point at", async () => {
    const page = await open("/schedules/nightly_report");
    const pointed = page.locator("[data-part=pointed]");
    await strip(page).locator("a[tabindex='0']").focus();
    for (const key of ["ArrowLeft", "ArrowLeft", "ArrowLeft"]) await page.keyboard.press(key);
    await pointed.getByText("run failed").waitFor();
    await page.keyboard.press("Home");
    await page.keyboard.press("End");
    await pointed.getByText("completed").waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/runs/${nights.get(0)}`);
  });

  test("the ledger is the strip as a table, and goes on with older rows", async () => {
    const page = await open("/schedules/nightly_report");
    const outcomes = (within: Locator) =>
      within.locator("[data-outcome]").evaluateAll((all) => all.map((one) => one.getAttribute("data-outcome")));
    expect(await outcomes(ledger(page))).toEqual((await outcomes(strip(page))).reverse());
    await ledger(page)
      .getByText(/getaddrinfo ENOTFOUND rates\.example\.com/)
      .waitFor();
    await ledger(page).getByText("1 h 30 m late, stands for 2 missed before it").waitFor();
    await ledger(page).getByText("triggered by ada, The first one had no header.").waitFor();
    await page.getByRole("button", { name: "Older" }).click();
    await page.getByText("the oldest", { exact: true }).waitFor();
    const count = (await world.pawl.schedules.occurrences("nightly_report", { limit: 1_000 })).occurrences.length;
    expect(await ledger(page).locator("tbody tr").count()).toBe(count - 50);
    await page.reload();
    await page.getByText("the oldest", { exact: true }).waitFor();
    expect(await strip(page).locator("[data-outcome]").count()).toBe(50);
    await page.getByRole("button", { name: "Newest" }).click();
    await page.getByRole("button", { name: "Older" }).waitFor();
  });

  test("Home tells of late schedules and of those that failures have paused, and leads there", async () => {
    const page = await open("/");
    const group = page.locator("[data-group=schedules]");
    await group.getByText("2 schedules that should start runs and do not").waitFor();
    await group.getByRole("link", { name: /^import_prices is paused 3 runs in a row have failed/ }).waitFor();
    await group.getByRole("link", { name: /^billing_close is late by/ }).click();
    await page.getByRole("heading", { level: 1, name: "billing_close" }).waitFor();
  });

  test("the page of a run says which schedule started it, and for when", async () => {
    const { occurrences } = await world.pawl.schedules.occurrences("customer-42");
    const [{ runId, scheduledFor }] = occurrences as [(typeof occurrences)[number]];
    const page = await open(`/runs/${runId}`);
    const fact = page.getByText("Scheduled for", { exact: true }).locator("xpath=..");
    await fact.getByText("(backfill)").waitFor();
    expect(await fact.locator("time").getAttribute("datetime")).toBe(scheduledFor.toISOString());
    await main(page).getByRole("link", { name: "customer-42" }).click();
    await page.waitForURL("**/schedules/customer-42");
    await visit(page, `/runs/${nights.get(0)}`);
    expect(await page.getByText("Scheduled for", { exact: true }).count()).toBe(0);
  });

  test("a database without schedules says how to declare one", async () => {
    const empty = await serveSchedules({ worker: { schedules: [] } });
    const page = await empty.open("/schedules");
    await page.getByRole("region", { name: "There are no schedules yet" }).waitFor();
    await main(page)
      .getByText(/schedules: \[nightly\]/)
      .waitFor();
    await main(page)
      .getByText(/pawl\.schedules\.put/)
      .waitFor();
    await page.getByRole("button", { name: "Copy the code" }).first().click();
    const copied = (await page.evaluate("navigator.clipboard.readText()")) as string;
    expect(copied).toMatch(/schedule\("nightly_report", \{/);
  });

  test("a schedule that is unknown, and one that was deleted, whose ledger stays", async () => {
    const page = await world.open("/schedules/nothing", { expected: [/404/] });
    await page.getByText("There is no such schedule").waitFor();
    await world.put("short_lived");
    await world.pawl.schedules.trigger("short_lived");
    await world.pawl.schedules.delete("short_lived");
    await visit(page, "/schedules/short_lived");
    await page.getByText("This schedule was deleted").waitFor();
    await until(async () => (await ledger(page).locator("tbody tr").count()) === 1);
  });

  test("long lists of schedules have pages", async () => {
    const many = await serveSchedules();
    for (let n = 100; n < 205; n++) await many.put(`customer-${n}`);
    const page = await many.open("/schedules");
    const names = page.locator("a[data-schedule]");
    await names.last().getByText("customer-199").waitFor();
    await page.getByRole("button", { name: "Next page" }).click();
    await names.last().getByText("nightly_report").waitFor();
    expect(await names.count()).toBe(6);
    await page.reload();
    await names.last().getByText("nightly_report").waitFor();
    await page.getByRole("button", { name: "First page" }).click();
    await names.last().getByText("customer-199").waitFor();
  });

  const addresses = [
    "/schedules",
    ...["nightly_report", "customer-42", "press_check", "legacy_sync", "black_friday", "billing_close"].map(
      (name) => `/schedules/${name}`,
    ),
    "/schedules/nightly_report?from=2027-03-26T12:00:00Z",
    ...["pause", "trigger", "backfill"].map((action) => `/schedules/nightly_report?do=${action}`),
    "/schedules/press_check?do=resume",
    "/schedules/customer-42?do=delete",
  ];
  test("axe finds nothing, and nothing scrolls sideways", async () => {
    const page = await world.open("/schedules", { bypassesCsp: true });
    const found: string[] = [];
    for (const [index, address] of addresses.entries()) {
      await visit(page, address);
      if (address.endsWith("do=backfill")) {
        await page.getByRole("button", { name: "Preview" }).click();
        await page.getByRole("list", { name: "Occurrences that would run" }).waitFor();
      }
      found.push(...(await problemsInAllLooks(page, index)).map((problem) => `${address}: ${problem}`));
    }
    expect(found).toEqual([]);
  });
});
