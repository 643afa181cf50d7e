/**
 * Shows every screen with a busy database, light and dark. `PAWL_SCREENSHOTS=1 npm test -- test/dashboard/screenshots` keeps
 * what they look like, for docs/dashboard.md.
 */
import type { Page } from "playwright-core";
import { beforeAll, test } from "vitest";
import { endOfSuite } from "../support/end-of-suite.js";
import { rawSql } from "../support/raw-sql.js";
import { inBrowser } from "./support/browser.js";
import { settled, visit } from "./support/screens.js";
import { pictureLooks, takeScreenshot } from "./support/screenshots.js";
import { serveWorld, type World } from "./support/world.js";

/** The figures of two days, so that charts have something to show. The numbers are made up, and the same each time. */
async function insertFigures(databaseUrl: string): Promise<void> {
  const sql = await rawSql(databaseUrl);
  const present = Math.floor(Date.now() / 60_000);
  const rows = Array.from({ length: 48 * 60 }, (_, age) => {
    const began = Math.round(12 + 8 * Math.sin(age / 47) + 4 * Math.sin(age / 7));
    const failed = age % 53 < 4 ? 1 + (age % 3) : 0;
    return `(${present - 1 - age}, 'order', ${began}, ${Math.max(0, began - failed)}, ${failed}, 0, ${age % 211 === 0 ? 1 : 0})`;
  });
  await sql.query(
    `INSERT INTO pawl_figures (minute, workflow, began, completed, failed, canceled, paused) VALUES ${rows.join(", ")}`,
  );
  await sql.close();
}

inBrowser(() => {
  let world: World;
  const onEnd = endOfSuite();
  beforeAll(async () => {
    world = await serveWorld({
      onEnd,
      dashboard: { label: "staging" },
      authorize: () => ({ user: "ada", access: "all" }),
    });
    await insertFigures(world.databaseUrl);
    const { order, Onboarding } = world.workflows;
    for (let n = 0; n < 24; n++) {
      const run = await world.pawl.start(
        order,
        { sku: n % 8 === 0 ? "BROKEN" : `B-${n}`, cents: 4_200 + n },
        { tags: ["web"] },
      );
      if (n % 3 !== 1) await run.signal("approved", { by: "finance" });
    }
    for (let id = 10; id < 20; id++)
      await world.pawl.start(Onboarding, undefined, { hero: { type: "User", id: String(id) } });
  });

  /** Names of pictures, with the addresses that they show. */
  const addresses = ({ runs }: World): Readonly<Record<string, string>> => ({
    home: "/",
    runs: "/runs",
    "run-timeline": `/runs/${runs.failed}`,
    "run-graph": `/runs/${runs.failedGraph}?tab=graph`,
    "run-log": `/runs/${runs.failed}?tab=log`,
    "run-data": `/runs/${runs.failed}?tab=data`,
    "run-messages": `/runs/${runs.waiting}?tab=messages`,
    "step-panel": `/runs/${runs.failed}?step=ship`,
    workflows: "/workflows",
    workflow: "/workflows/order",
    "start-form": "/workflows/order?start=1",
    errors: "/errors",
    queues: "/queues",
    workers: "/workers",
    database: "/database",
  });

  const show = async (page: Page, isDark: boolean) => {
    for (const [name, address] of Object.entries(addresses(world))) {
      await visit(page, address);
      await takeScreenshot(page, name, isDark);
    }
    await visit(page, `/runs/${world.runs.waiting}`);
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog", { name: "Find anything" }).waitFor();
    await takeScreenshot(page, "palette", isDark);
  };

  for (const isDark of pictureLooks)
    test(`every screen, ${isDark ? "dark" : "light"}`, async () => {
      await show(await world.open("/", { isDark }), isDark);
      const phone = await world.open(`/runs/${world.runs.failed}`, { isDark, width: 390, height: 844 });
      await settled(phone);
      await takeScreenshot(phone, "phone-run", isDark);
    });
});
