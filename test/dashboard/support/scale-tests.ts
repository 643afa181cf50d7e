/**
 * The dashboard with much to show. What counts is what the page holds, not how fast this machine is: `npm test` runs a
 * smaller form and reports long tasks, and `npm run test:scale` runs the whole and bounds them.
 */
import { job, workflow } from "pawl";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { type SeededRuns, seedRuns } from "../../scale/seed.js";
import { endOfSuite } from "../../support/end-of-suite.js";
import { until } from "../../support/waiting.js";
import { settled, visit } from "./screens.js";
import { type ServedDashboard, serveDashboard } from "./served-dashboard.js";

export interface Scale {
  readonly runs: number;
  readonly nodes: number;
  /** How often the page is told of changes while its memory is watched; about once a second. */
  readonly updates: number;
  /** The longest task that the page may need, in milliseconds; null: they are only reported. */
  readonly longestTaskMs: number | null;
}

/** No list has more rows in the page than this, however long it is. */
const mostRows = 300;
/** What a page may keep of updates: the answers that it shows, and what the browser has not returned yet. */
const mostGrowthBytes = 8_000_000;

const rowCount = `document.querySelectorAll("main [role=row], main [role=listitem], main li, main tbody tr").length`;

const quick = workflow("quick", async () => {});
const idle = job("Idle", () => {});

export function scaleTests({ runs, nodes, updates, longestTaskMs }: Scale): void {
  let served: ServedDashboard;
  let seeded: SeededRuns;
  const onEnd = endOfSuite();
  beforeAll(async () => {
    served = await serveDashboard({ onEnd, registered: [quick], jobs: [idle] });
    seeded = await seedRuns("sqlite", served.databaseUrl, runs);
  });

  const expectShortTasks = async (page: Page, what: string) => {
    const tasks = (await page.evaluate("testLongTasks.map(Math.round)")) as number[];
    console.log(`${what}: longest task ${Math.max(0, ...tasks)} ms, ${tasks.length} of more than 50 ms`);
    if (longestTaskMs !== null) expect(Math.max(0, ...tasks), what).toBeLessThanOrEqual(longestTaskMs);
  };

  /** Scrolls a list to its end, or so many times, and counts the rows in the page on the way. */
  const scrollThrough = async (page: Page, times: number, pixels: number): Promise<number> => {
    const box = await page.getByRole("main").boundingBox();
    await page.mouse.move((box?.x ?? 0) + 300, (box?.y ?? 0) + (box?.height ?? 600) * 0.8);
    let most = 0;
    for (let n = 0; n < times; n++) {
      await page.mouse.wheel(0, pixels);
      await settled(page);
      most = Math.max(most, (await page.evaluate(rowCount)) as number);
    }
    return most;
  };

  test(`the list of ${runs.toLocaleString("en")} runs keeps at most ${mostRows} rows in the page`, async () => {
    const page = await served.open("/runs");
    await settled(page);
    const first = await page
      .getByRole("link", { name: /^flow_/ })
      .first()
      .getAttribute("href");
    const most = await scrollThrough(page, 30, 2_800);
    expect(most).toBeLessThanOrEqual(mostRows);
    expect(
      await page
        .getByRole("link", { name: /^flow_/ })
        .first()
        .getAttribute("href"),
    ).not.toBe(first);
    await expectShortTasks(page, "the list of runs");
  });

  test("a run with 50,000 events: log, timeline and the last event", async () => {
    const page = await served.open(`/runs/${seeded.longRunId}?tab=log`);
    await settled(page);
    expect(await scrollThrough(page, 10, 20_000)).toBeLessThanOrEqual(mostRows);
    await visit(page, `/runs/${seeded.longRunId}`);
    expect(await scrollThrough(page, 10, 5_000)).toBeLessThanOrEqual(mostRows);
    await visit(page, `/runs/${seeded.longRunId}?tab=log&event=40000`);
    await page.getByText(/after event 40,000/).waitFor();
    expect(await page.evaluate(rowCount)).toBeLessThanOrEqual(mostRows);
    await expectShortTasks(page, "a run with 50,000 events");
  });

  test(`a graph with ${nodes.toLocaleString("en")} nodes is drawn with few boxes, and its list with few rows`, async () => {
    const run = await served.pawl.build(
      "wide",
      (g) => {
        const first = g.node("first", { job: idle });
        const size = Math.ceil(nodes / 4);
        const layers = Array.from({ length: 4 }, (_, layer) =>
          g.fanOut(
            Array.from({ length: size }, (__, n) => n),
            { name: (n) => `part ${layer}.${n}`, job: idle, dependsOn: first },
          ),
        );
        g.node("last", { job: idle, dependsOn: layers.flat() });
      },
      { start: false },
    );
    const page = await served.open(`/runs/${run.id}?tab=graph`);
    await settled(page);
    await page
      .getByRole("main")
      .getByRole("button", { name: /^first/ })
      .first()
      .waitFor();
    expect(await page.evaluate(`document.querySelectorAll("main *").length`)).toBeLessThan(8_000);
    expect(await page.evaluate(rowCount)).toBeLessThanOrEqual(mostRows);
    await expectShortTasks(page, `a graph with ${nodes} nodes`);
  });

  test("live updates do not make the page grow", async () => {
    const page = await served.open("/runs");
    await settled(page);
    const devTools = await page.context().newCDPSession(page);
    const heap = async () => {
      await devTools.send("HeapProfiler.collectGarbage");
      return (await devTools.send("Runtime.getHeapUsage")).usedSize;
    };
    let requests = 0;
    page.on("response", () => void (requests += 1));
    const update = async () => {
      const before = requests;
      await served.pawl.start(quick, undefined);
      await until(() => requests > before);
      await settled(page);
    };
    for (let n = 0; n < 3; n++) await update();
    const before = await heap();
    for (let n = 0; n < updates; n++) await update();
    const growth = (await heap()) - before;
    console.log(`${updates} live updates: the page grew by ${Math.round(growth / 1_000)} kB`);
    expect(growth).toBeLessThan(mostGrowthBytes);
  });
}
