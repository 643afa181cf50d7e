/** What axe finds wrong with a page. The page must have been opened with `bypassesCsp`, because axe is a script of the test. */
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { sized } from "../../support/effort.js";
import { scrollsSideways, settled } from "./screens.js";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

export async function violationsIn(page: Page, rules: "all" | "of colours" = "all"): Promise<string[]> {
  if (!(await page.evaluate(`"axe" in window`))) await page.addScriptTag({ path: axe });
  const runOnly = rules === "all" ? {} : { runOnly: ["color-contrast", "link-in-text-block"] };
  const options = JSON.stringify({ resultTypes: ["violations"], ...runOnly });
  const violations = (await page.evaluate(
    `axe.run(document, ${options}).then(({ violations }) => violations)`,
  )) as readonly Violation[];
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}\n  ${html.slice(0, 300)}\n  ${failureSummary}`),
  );
}

/**
 * What is wrong with a page in a wide window, in the dark, and on a phone: the same page in three looks, because to load it
 * takes longer than to repaint it. In the dark only colours differ, so only the rules about colours are asked again. In the short form
 * axe looks at every screen in the light, and at every other in the dark or on a phone.
 *
 * @param index of the screen among those of the test
 */
export async function problemsInAllLooks(page: Page, index: number): Promise<string[]> {
  const problems: string[] = [];
  const isTurn = (remainder: number) => index % sized(2, 1) === sized(remainder, 0);
  const look = async (
    name: string,
    colorScheme: "light" | "dark",
    width: number,
    rules: "all" | "of colours" | null,
  ) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 844 });
    await settled(page);
    const violations = rules === null ? [] : await violationsIn(page, rules);
    problems.push(...violations.map((violation) => `${name}: ${violation}`));
    if (await scrollsSideways(page)) problems.push(`${name}: scrolls sideways`);
  };
  if (isTurn(0)) await look("dark", "dark", 1280, "of colours");
  await look("light", "light", 1280, "all");
  await look("on a phone", "light", 390, isTurn(1) ? "all" : null);
  return problems;
}
