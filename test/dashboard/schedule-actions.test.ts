/** What people do with schedules: with what consequence, what they are told, and what the schedule says afterwards. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { until } from "../support/waiting.js";
import { inBrowser } from "./support/browser.js";
import { type ScheduleWorld, serveSchedules, writeLate } from "./support/schedule-world.js";
import { scrollsSideways, settled, visit } from "./support/screens.js";

const standing = (page: Page) => page.locator("[data-part=standing]");
const status = (page: Page, name: string) =>
  page.getByRole("banner").or(page.getByRole("main")).locator(`[data-status=${name}]`).first();
const button = (page: Page, name: string) => page.getByRole("main").getByRole("button", { name, exact: true });
const toast = (page: Page, text: RegExp) => page.getByRole("status").getByText(text);
const markup = `<img src=x onerror="document.body.dataset.injected=1" data-injected>`;

/** Two people with the same access, each in a page of their own. */
const people = {
  authorize: (request: Request) => ({ user: request.headers.get("x-user") ?? "ada", access: "all" as const }),
};

async function openSchedule(world: ScheduleWorld, name: string, options: Parameters<ScheduleWorld["open"]>[1] = {}) {
  const page = await world.open(`/schedules/${encodeURIComponent(name)}`, options);
  await settled(page);
  return page;
}

/** Starts a run of the schedule that stays open until the gate opens. */
async function putWithOpenRun(world: ScheduleWorld, name: string): Promise<void> {
  await world.put(name, { waits: true });
  await world.pawl.schedules.trigger(name);
  await world.hasOpenRuns(name, 1);
}

inBrowser(() => {
  forEachStore(
    (kind) => {
      test("a pause has an end and a reason, is shown when the server has it, and ends by resume", async () => {
        const world = await serveSchedules({ kind, ...people });
        await world.put("monthly");
        const page = await openSchedule(world, "monthly");
        await button(page, "Pause").click();
        const dialog = page.getByRole("dialog", { name: "Pause: monthly" });
        await dialog.getByText(/It starts no runs until the pause ends/).waitFor();
        await dialog.getByLabel("The pause ends").selectOption("1 day");
        await dialog.getByLabel("Reason").fill("The press is broken.");
        await dialog.getByText("The same on the command line and in TypeScript").click();
        await dialog.getByText(`pawl schedules pause monthly --until '1 day' --reason "…"`).waitFor();
        // The answer of the server is held back, and the page does not say that it is done.
        let answer = () => {};
        const held = new Promise<void>((resolve) => {
          answer = resolve;
        });
        await page.route("**/pause", async (route) => {
          await held;
          await route.continue();
        });
        await dialog.getByRole("button", { name: "Pause the schedule" }).click();
        await dialog.getByRole("button", { name: "Sending…" }).waitFor();
        await status(page, "active").waitFor();
        answer();
        await standing(page)
          .getByText(
            /^Paused by ada.*: The press is broken\. It starts no runs and resumes by itself in (1 d 00 h|23 h 59 m)/,
          )
          .waitFor();
        await status(page, "paused").waitFor();
        const paused = await world.pawl.schedules.get("monthly");
        expect([paused.status, paused.pausedBy, paused.pauseReason]).toEqual(["paused", "ada", "The press is broken."]);
        await button(page, "Resume").click();
        const resume = page.getByRole("dialog", { name: "Resume: monthly" });
        await resume.getByText("It starts runs again. It has missed no occurrence.").waitFor();
        await resume.getByRole("button", { name: "Resume the schedule" }).click();
        await status(page, "active").waitFor();
        expect((await world.pawl.schedules.get("monthly")).status).toBe("active");
      });

      test("a trigger starts a run; while one is open, the overlap decides, unless it is forced", async () => {
        const world = await serveSchedules({ kind, ...people });
        await world.put("on_demand", { waits: true });
        const page = await openSchedule(world, "on_demand");
        await button(page, "Trigger now").click();
        const dialog = page.getByRole("dialog", { name: "Trigger now: on_demand" });
        await dialog.getByText("A run of report starts now.").waitFor();
        expect(await dialog.getByRole("checkbox").count()).toBe(0);
        await dialog.getByLabel("Reason").fill("A customer asked.");
        await dialog.getByRole("button", { name: "Trigger now" }).click();
        await toast(page, /on_demand has started a run/).waitFor();
        await page.locator("[data-part=work]").getByText("1 run is open").waitFor();
        const [first] = (await world.pawl.schedules.occurrences("on_demand")).occurrences;
        expect([first?.manual, first?.by, first?.reason]).toEqual([true, "ada", "A customer asked."]);

        await button(page, "Trigger now").click();
        await dialog.getByText("1 run is open. So this occurrence is skipped.").waitFor();
        await dialog.getByRole("button", { name: "Trigger now" }).click();
        await dialog.getByText("No run was started, because one is open; the ledger has it as skipped.").waitFor();
        expect((await world.pawl.schedules.get("on_demand")).openRuns).toBe(1);
        await dialog.getByLabel("Start it although a run is open").check();
        await dialog.getByRole("button", { name: "Start a run anyway" }).click();
        await page.locator("[data-part=work]").getByText("2 runs are open").waitFor();
        const outcomes = (await world.pawl.schedules.occurrences("on_demand")).occurrences.map(
          ({ outcome }) => outcome,
        );
        expect(outcomes.toSorted()).toEqual(["ran", "ran", "skipped_overlap"]);
      });

      test("a backfill shows first what would run and what has run; what is confirmed runs", async () => {
        const world = await serveSchedules({ kind, ...people });
        await world.pawl.schedules.put("daily", { workflow: "report", input: {}, cron: "0 0 1 1 *" });
        const page = await openSchedule(world, "daily");
        await page.keyboard.press("b");
        const dialog = page.getByRole("dialog", { name: "Backfill: daily" });
        const confirm = () => dialog.getByRole("button", { name: /^Start/ });
        await dialog.getByLabel("From").fill("2020-06-01T00:00");
        await dialog.getByLabel("To").fill("2019-06-01T00:00");
        await dialog.getByText("The end is before the beginning.").waitFor();
        await dialog.getByLabel("To").fill("2022-06-01T00:00");
        expect(await confirm().isDisabled()).toBe(true);
        const preview = dialog.locator("[data-part=preview]");
        await dialog.getByRole("button", { name: "Preview" }).click();
        await preview.getByText("2 runs would start.").waitFor();
        expect(await preview.getByRole("listitem").allTextContents()).toEqual([
          "Fri 2021-01-01 00:00",
          "Sat 2022-01-01 00:00",
        ]);
        expect((await world.pawl.schedules.occurrences("daily")).occurrences).toEqual([]);
        await confirm().click();
        await toast(page, /2 runs of the backfill will start/).waitFor();
        await until(async () => {
          const { occurrences } = await world.pawl.schedules.occurrences("daily");
          return occurrences.filter(({ runStatus }) => runStatus === "completed").length === 2;
        });

        await page.keyboard.press("b");
        await dialog.getByLabel("From").fill("2019-06-01T00:00");
        await dialog.getByLabel("To").fill("2022-06-01T00:00");
        await dialog.getByRole("button", { name: "Preview" }).click();
        await preview.getByText("1 run would start; 2 have run already and are left out.").waitFor();
        // What was shown does not fit another range, so it must be asked for again.
        await dialog.getByLabel("From").fill("2020-06-01T00:00");
        expect(await confirm().isDisabled()).toBe(true);
        await dialog.getByRole("button", { name: "Preview" }).click();
        await preview.getByText("Nothing is left to run: 2 have run already.").waitFor();
        expect(await confirm().isDisabled()).toBe(true);
      });

      test("a schedule of the API can be deleted, one of the code cannot", async () => {
        const world = await serveSchedules({ kind, ...people });
        await putWithOpenRun(world, "temporary");
        // The page of the schedule may ask for it once more before it is left.
        const page = await openSchedule(world, "temporary", { expected: [/404/] });
        await page.keyboard.press(".");
        await page.getByRole("menuitem", { name: "Delete" }).click();
        const dialog = page.getByRole("dialog", { name: "Delete: temporary" });
        await dialog.getByText(/1 run that is open goes on\..*The ledger stays\./).waitFor();
        await dialog.getByRole("button", { name: "Delete the schedule" }).click();
        await page.waitForURL("**/schedules");
        await settled(page);
        expect(await page.getByRole("link", { name: "temporary" }).count()).toBe(0);
        await page.getByRole("link", { name: "nightly_report" }).click();
        await settled(page);
        await page.keyboard.press(".");
        const item = page.getByRole("menuitem", { name: /^Delete/ });
        expect([await item.isDisabled(), await item.textContent()]).toEqual([true, "Deletedeclared by shop"]);
      });

      test("what another person has done meanwhile is told, and nothing is done until it was seen", async () => {
        const world = await serveSchedules({ kind, ...people });
        await world.put("shared");
        const page = await openSchedule(world, "shared");
        // This page learns of nothing by itself, once what it has asked for before has been answered.
        await page.getByRole("button", { name: "Live", exact: true }).click();
        await page.waitForLoadState("networkidle");
        await button(page, "Pause").click();
        const dialog = page.getByRole("dialog", { name: "Pause: shared" });
        await dialog.getByLabel("Reason").fill("Mine.");
        await world.pawl.schedules.pause("shared", { by: "bob", reason: `Bob's ${markup}` });
        await dialog.getByRole("button", { name: "Pause the schedule" }).click();
        await dialog
          .getByRole("alert")
          .getByText("Nothing was done, because the schedule has changed meanwhile.")
          .waitFor();
        await dialog.locator("[data-part=changed]").getByText(`It was paused by bob: Bob's ${markup}`).waitFor();
        expect((await world.pawl.schedules.get("shared")).pausedBy).toBe("bob");
        await dialog.getByRole("button", { name: "Change the pause" }).click();
        await dialog.waitFor({ state: "hidden" });
        await until(async () => (await world.pawl.schedules.get("shared")).pausedBy === "ada");
        expect(await page.evaluate("document.body.dataset.injected ?? null")).toBe(null);
      });

      test("an occurrence appears on the page when the schedule fires", async () => {
        const world = await serveSchedules({ kind, ...people });
        await world.pawl.schedules.put("yearly", { workflow: "report", input: {}, cron: "0 0 1 1 *" });
        const page = await openSchedule(world, "yearly");
        await page.getByText("It has had none yet.").waitFor();
        // As if no worker had lived since New Year.
        const due = Date.UTC(new Date().getUTCFullYear(), 0, 1);
        await world.rewrite("yearly", { nextFor: due, nextAt: due });
        const strip = page.getByRole("list", { name: "Outcomes, the oldest first" });
        await strip.locator("[data-outcome=run_completed]").waitFor();
        await page.getByRole("table", { name: "Ledger" }).locator("[data-outcome=run_completed]").waitFor();
        await visit(page, "/schedules");
        await page.getByRole("row").filter({ hasText: "yearly" }).locator("[data-outcome=ran]").waitFor();
      });
    },
    ["sqlite"] as const,
  );

  test("a dialog that is open says at once what another person does, and goes no further if it is too late", async () => {
    const world = await serveSchedules(people);
    await world.put("shared");
    await world.pawl.schedules.pause("shared", { by: "bob" });
    const page = await openSchedule(world, "shared");
    await page.keyboard.press("r");
    const dialog = page.getByRole("dialog", { name: "Resume: shared" });
    await dialog.waitFor();
    await world.pawl.schedules.resume("shared");
    await dialog.locator("[data-part=changed]").getByText("It was resumed.").waitFor();
    await dialog.getByText("This is not possible: It is not paused.").waitFor();
    expect(await dialog.getByRole("button", { name: "Resume the schedule" }).isDisabled()).toBe(true);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    expect(new URL(page.url()).search).toBe("");
  });

  test("a pause until a date is in the zone of the schedule", async () => {
    const world = await serveSchedules(people);
    const page = await openSchedule(world, "nightly_report");
    await page.keyboard.press("p");
    const dialog = page.getByRole("dialog", { name: "Pause: nightly_report" });
    await dialog.getByLabel("The pause ends").selectOption("date");
    const field = dialog.getByLabel("Date and time in Europe/Berlin");
    await field.fill("2001-01-01T00:00");
    await dialog.getByText("This time has passed.").waitFor();
    expect(await dialog.getByRole("button", { name: "Pause the schedule" }).isDisabled()).toBe(true);
    await field.fill("2090-07-01T12:00");
    await dialog.getByRole("button", { name: "Pause the schedule" }).click();
    await standing(page)
      .getByText(/Sat 2090-07-01 12:00 Europe\/Berlin/)
      .waitFor();
    expect((await world.pawl.schedules.get("nightly_report")).pausedUntil?.toISOString()).toBe(
      "2090-07-01T10:00:00.000Z",
    );
  });

  test("an address opens a dialog, and Escape leads back to the page", async () => {
    const world = await serveSchedules(people);
    const page = await world.open("/schedules/nightly_report?do=trigger");
    await settled(page);
    await page.getByRole("dialog", { name: "Trigger now: nightly_report" }).waitFor();
    await page.keyboard.press("Escape");
    await page.waitForURL("**/schedules/nightly_report");
    await visit(page, "/schedules/nightly_report?do=nonsense");
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("a schedule whose input is computed is triggered by a worker that has the code", async () => {
    const world = await serveSchedules(people);
    const page = await openSchedule(world, "nightly_report");
    await page.keyboard.press("t");
    const dialog = page.getByRole("dialog", { name: "Trigger now: nightly_report" });
    await dialog.getByText(/A worker that has the code computes its input\./).waitFor();
    await dialog.getByRole("button", { name: "Trigger now" }).click();
    await page.getByRole("table", { name: "Ledger" }).locator("[data-outcome=run_completed]").waitFor();
  });

  test("what the server refuses is said, and the dialog stays", async () => {
    const world = await serveSchedules(people);
    await world.pawl.schedules.put("busy", { workflow: "report", input: {}, every: "1 minute" });
    await world.pawl.schedules.pause("busy");
    const page = await openSchedule(world, "busy", { expected: [/400/] });
    await page.keyboard.press("b");
    const dialog = page.getByRole("dialog", { name: "Backfill: busy" });
    await dialog.getByLabel("From").fill("2020-01-01T00:00");
    await dialog.getByLabel("To").fill("2021-01-01T00:00");
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog
      .getByRole("alert")
      .getByText(/more than 10,000 occurrences; choose a shorter range/)
      .waitFor();
    expect(await dialog.getByRole("button", { name: "Start the runs" }).isDisabled()).toBe(true);
  });

  test.each([
    ["read", "read" as const],
    ["another permission", ["pause" as const]],
  ])("access without “schedules” hides the actions: %s", async (_, access) => {
    const world = await serveSchedules({ authorize: () => ({ user: "eve", access }) });
    await world.put("monthly");
    const page = await openSchedule(world, "monthly");
    for (const name of ["Trigger now", "Pause", "Backfill"]) expect(await button(page, name).count(), name).toBe(0);
    await page.keyboard.press(".");
    const items = await page.getByRole("menuitem").allTextContents();
    expect(items).toEqual(["Copy as a command", "Copy as TypeScript", "Copy the linky"]);
    await page.getByRole("menuitem", { name: "Copy as a command" }).click();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("pawl schedules show monthly");
    for (const key of ["p", "t", "b"]) await page.keyboard.press(key);
    expect(await page.getByRole("dialog").count()).toBe(0);
    await visit(page, "/schedules/monthly?do=trigger");
    const dialog = page.getByRole("dialog", { name: "Trigger now: monthly" });
    await dialog.getByText("You may not do this: your access lacks “schedules”.").waitFor();
    expect(await dialog.getByRole("button", { name: "Trigger now" }).isDisabled()).toBe(true);
  });

  const hostileNames = [
    markup,
    "photo\u202egnp.exe",
    "a/../b?c=d#e&f",
    "__proto__",
    "100 % 'quoted' \"twice\"",
    "n".repeat(190),
  ];
  test.each(hostileNames.map((name) => [name]))("a hostile name is text on every screen: %j", async (name) => {
    const world = await serveSchedules({ authorize: () => ({ user: markup, access: "all" }) });
    await world.put(name);
    await world.pawl.schedules.pause(name, { by: markup, reason: `${markup}\u0007\u202e${"x".repeat(4_000)}` });
    await world.pawl.schedules.trigger(name, { reason: markup });
    await writeLate(world, `late ${name}`.slice(0, 200));
    const page = await world.open("/schedules", { width: 390, height: 844 });
    await settled(page);
    const shown = name.replace("\u202e", "\\u202e");
    await page.getByRole("link", { name: shown, exact: true }).click();
    await page.getByRole("heading", { level: 1, name: shown, exact: true }).waitFor();
    await page.getByRole("table", { name: "Ledger" }).locator("tbody tr").waitFor();
    expect(await scrollsSideways(page)).toBe(false);
    await page.keyboard.press("r");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("The same on the command line and in TypeScript").click();
    expect(await scrollsSideways(page)).toBe(false);
    await dialog.getByRole("button", { name: "Resume the schedule" }).click();
    await status(page, "active").waitFor();
    const [triggered] = (await world.pawl.schedules.occurrences(name)).occurrences;
    await visit(page, `/runs/${triggered?.runId}`);
    await page.getByRole("link", { name: shown, exact: true }).waitFor();
    await visit(page, "/");
    await page.locator("[data-group=schedules]").waitFor();
    expect(await scrollsSideways(page)).toBe(false);
    expect(await page.locator("[data-injected]").count()).toBe(0);
    expect(await page.evaluate("document.body.dataset.injected ?? null")).toBe(null);
  });
});
