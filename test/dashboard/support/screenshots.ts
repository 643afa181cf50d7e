/** Pictures for the documentation. They change with every run of the tests, so they are made only when they are asked for. */
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";

const keepsPictures = process.env.PAWL_SCREENSHOTS === "1";

/** Whether it is dark: both for pictures. Without pictures the screens are only shown, and that does not depend on colours. */
export const pictureLooks: readonly boolean[] = keepsPictures ? [false, true] : [false];

const folder = fileURLToPath(new URL("../../../docs/images/", import.meta.url));

/** Writes the page as it is to `docs/images/dashboard-<name>-<light or dark>.png`, if `PAWL_SCREENSHOTS=1` asks for pictures. */
export async function takeScreenshot(page: Page, name: string, isDark = false): Promise<void> {
  if (!keepsPictures) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({
    path: `${folder}dashboard-${name}-${isDark ? "dark" : "light"}.png`,
    animations: "disabled",
  });
}
