/** Pictures for the documentation. They change with every run of the tests, so they are made only when they are asked for. */
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { settled } from "./screens.js";

const folder = fileURLToPath(new URL("../../../docs/images/dashboard/", import.meta.url));

/** Whether `PAWL_SCREENSHOTS=1` asks for pictures. */
const wantsScreenshots = process.env.PAWL_SCREENSHOTS === "1";

/** Writes the page as it is to `docs/images/dashboard/<name>-<light or dark>.png`, if pictures are asked for. */
export async function takeScreenshot(page: Page, name: string, isDark: boolean): Promise<void> {
  await settled(page);
  if (!wantsScreenshots) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: `${folder}${name}-${isDark ? "dark" : "light"}.png`, animations: "disabled" });
}
