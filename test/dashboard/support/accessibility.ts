/** What axe finds wrong with a page. The page must have been opened with `bypassesCsp`, because axe is a script of the test. */
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

export async function violationsIn(page: Page): Promise<string[]> {
  if (!(await page.evaluate(`"axe" in window`))) await page.addScriptTag({ path: axe });
  const violations = (await page.evaluate(
    `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations)`,
  )) as readonly Violation[];
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}\n  ${html.slice(0, 300)}\n  ${failureSummary}`),
  );
}
