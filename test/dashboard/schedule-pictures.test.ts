/** Shows the screens of schedules, light, dark and on a phone. `PAWL_SCREENSHOTS=1` keeps what they look like. */
import { beforeAll, test } from "vitest";
import { endOfSuite } from "../support/end-of-suite.js";
import { inBrowser } from "./support/browser.js";
import { type ScheduleWorld, serveSchedules, writeNights, writeOthers, zone } from "./support/schedule-world.js";
import { settled, visit } from "./support/screens.js";
import { pictureLooks, takeScreenshot } from "./support/screenshots.js";

/** Four days before the next Sunday on which the clocks of Berlin change. */
function beforeClocksChange(): string {
  const offset = (at: number) =>
    new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" }).format(at).split(" ").at(-1);
  const day = 86_400_000;
  let at = Math.ceil(Date.now() / day) * day;
  while (offset(at) === offset(at + day)) at += day;
  return new Date(at - 4 * day).toISOString();
}

inBrowser(() => {
  let world: ScheduleWorld;
  const onEnd = endOfSuite();
  beforeAll(async () => {
    world = await serveSchedules({
      onEnd,
      dashboard: { label: "staging" },
      authorize: () => ({ user: "ada", access: "all" }),
    });
    await writeNights(world);
    await writeOthers(world);
  });

  for (const isDark of pictureLooks)
    test(`the screens of schedules, ${isDark ? "dark" : "light"}`, async () => {
      const page = await world.open("/schedules", { isDark });
      await settled(page);
      await takeScreenshot(page, "schedules", isDark);
      await page.setViewportSize({ width: 1280, height: 1000 });
      await visit(page, `/schedules/nightly_report?from=${beforeClocksChange()}`);
      await takeScreenshot(page, "schedule", isDark);
      await visit(page, "/schedules/customer-42?do=backfill");
      await page.getByRole("button", { name: "Preview" }).click();
      await page.getByRole("list", { name: "Occurrences that would run" }).waitFor();
      await takeScreenshot(page, "schedule-backfill", isDark);
      const phone = await world.open("/schedules/nightly_report", { isDark, width: 390, height: 844 });
      await settled(phone);
      await takeScreenshot(phone, "phone-schedule", isDark);
    });
});
