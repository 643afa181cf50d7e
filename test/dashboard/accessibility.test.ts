/** axe finds nothing on any screen, light or dark, wide or narrow; and no screen makes a phone scroll sideways. */
import { beforeAll, expect, test } from "vitest";
import { endOfSuite } from "../support/end-of-suite.js";
import { problemsInAllLooks, violationsIn } from "./support/accessibility.js";
import { inBrowser } from "./support/browser.js";
import { everyAddress, settled, visit } from "./support/screens.js";
import { serveWorld, type World } from "./support/world.js";

inBrowser(() => {
  let world: World;
  const onEnd = endOfSuite();
  beforeAll(async () => {
    world = await serveWorld({ onEnd });
  });

  test("axe finds nothing on any screen, and nothing scrolls sideways", async () => {
    const page = await world.open("/", { bypassesCsp: true });
    const found: string[] = [];
    for (const [index, address] of everyAddress(world).entries()) {
      await visit(page, address);
      found.push(...(await problemsInAllLooks(page, index)).map((problem) => `${address}: ${problem}`));
    }
    expect(found).toEqual([]);
  });

  test("axe finds nothing in the palette, the shortcuts and a dialog", async () => {
    const page = await world.open("/", { bypassesCsp: true });
    await settled(page);
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog", { name: "Find anything" }).waitFor();
    expect(await violationsIn(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    expect(await violationsIn(page)).toEqual([]);
  });
});
