/** Shows the screens of limits, light, dark and on a phone. `PAWL_SCREENSHOTS=1` keeps what they look like. */
import { beforeAll, test } from "vitest";
import { endOfSuite } from "../support/end-of-suite.js";
import { inBrowser } from "./support/browser.js";
import { type LimitWorld, overrideOpenai, serveLimits } from "./support/limit-world.js";
import { settled, visit } from "./support/screens.js";
import { pictureLooks, takeScreenshot } from "./support/screenshots.js";

inBrowser(() => {
  let world: LimitWorld;
  const onEnd = endOfSuite();
  beforeAll(async () => {
    world = await serveLimits({
      onEnd,
      dashboard: { label: "staging" },
      authorize: () => ({ user: "ada", access: "all" }),
    });
    await overrideOpenai(world);
  });

  for (const isDark of pictureLooks)
    test(`the screens of limits, ${isDark ? "dark" : "light"}`, async () => {
      const page = await world.open("/limits", { isDark });
      await settled(page);
      await takeScreenshot(page, "limits", isDark);
      await visit(page, "/limits/per_tenant");
      await takeScreenshot(page, "limit", isDark);
      await visit(page, "/limits/openai");
      await takeScreenshot(page, "limit-overridden", isDark);
      await page.setViewportSize({ width: 1280, height: 1000 });
      await visit(page, "/limits/openai?do=override");
      await takeScreenshot(page, "limit-override", isDark);
      await visit(page, `/runs/${world.waiting[3]}`);
      await takeScreenshot(page, "limit-run", isDark);
      const phone = await world.open("/limits", { isDark, width: 390, height: 844 });
      await settled(phone);
      await takeScreenshot(phone, "phone-limits", isDark);
      await visit(phone, "/limits/per_tenant");
      await takeScreenshot(phone, "phone-limit", isDark);
    });
});
