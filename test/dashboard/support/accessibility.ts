/** What axe finds wrong with a page. The page must have been opened with `bypassesCsp`, because axe is a script of the test. */
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
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
 * takes longer than to repaint it. In the dark only colours differ, so only the rules about colours are asked again.
 */
export async function problemsInAllLooks(page: Page): Promise<string[]> {
  const problems: string[] = [];
  const look = async (name: string, colorScheme: "light" | "dark", width: number, rules: "all" | "of colours") => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 844 });
    await settled(page);
    problems.push(...(await violationsIn(page, rules)).map((violation) => `${name}: ${violation}`));
    if (await scrollsSideways(page)) problems.push(`${name}: scrolls sideways`);
  };
  await look("dark", "dark", 1280, "of colours");
  await look("light", "light", 1280, "all");
  await look("on a phone", "light", 390, "all");
  return problems;
}
