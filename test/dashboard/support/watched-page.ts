/**
 * Pages of the dashboard, watched: an error on the console, an exception, a violation of the content security policy, a
 * request to another origin or a dialog of the browser fails the test, whatever it is about.
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { browser, patienceMs } from "./browser.js";

export interface PageOptions {
  readonly isDark?: boolean;
  readonly width?: number;
  readonly height?: number;
  /** Whether scripts of the test may be added to the page, such as axe. Everything else is tested with the policy. */
  readonly bypassesCsp?: boolean;
  /** Messages on the console that the test causes on purpose, such as those of the browser about refused requests. */
  readonly expected?: readonly RegExp[];
  readonly headers?: Readonly<Record<string, string>>;
}

export interface WatchedPage {
  readonly page: Page;
  /** What went wrong so far. */
  readonly problems: ReadonlySet<string>;
}

/**
 * What runs in every page before the scripts of the dashboard. It counts the presses of the mouse for the click budgets, also
 * over reloads (Playwright's clicks press once each), and the requests that have no answer yet.
 */
const instruments = `
  let pending = 0;
  const realFetch = window.fetch;
  window.fetch = async (...given) => {
    pending += 1;
    try {
      return await realFetch(...given);
    } finally {
      pending -= 1;
    }
  };
  window.testLongTasks = [];
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) testLongTasks.push(duration);
  }).observe({ type: "longtask", buffered: true });
  window.testIsQuiet = () => pending === 0 && document.querySelector('main [aria-label="Loading"]') === null;
  addEventListener("pointerdown", (event) => {
    if (event.isTrusted) sessionStorage.setItem("test.presses", String(Number(sessionStorage.getItem("test.presses") ?? 0) + 1));
  }, true);
  addEventListener("securitypolicyviolation", (event) => {
    console.error("content security policy: " + event.violatedDirective + " " + event.blockedURI);
  });
`;

export async function openPage(url: string, options: PageOptions = {}): Promise<WatchedPage> {
  const { width = 1280, height = 800, isDark = false, bypassesCsp = false, expected = [], headers = {} } = options;
  const settings: BrowserContextOptions = {
    viewport: { width, height },
    colorScheme: isDark ? "dark" : "light",
    reducedMotion: "reduce",
    bypassCSP: bypassesCsp,
    locale: "en-GB",
    timezoneId: "Europe/Berlin",
    permissions: ["clipboard-read", "clipboard-write"],
    extraHTTPHeaders: headers,
  };
  const context = await (await browser()).newContext(settings);
  const problems = new Set<string>();
  onTestFinished(async ({ task }) => {
    if (task.result?.state === "fail") await keepPictures(context, task.name);
    await context.close();
    expect([...problems], "what went wrong in the page").toEqual([]);
  });
  context.setDefaultTimeout(patienceMs);
  context.setDefaultNavigationTimeout(patienceMs);
  await context.addInitScript(instruments);
  watch(context, new URL(url).origin, (problem) => {
    if (!expected.some((pattern) => pattern.test(problem))) problems.add(problem);
  });
  const page = await context.newPage();
  await page.goto(url);
  return { page, problems };
}

function watch(context: BrowserContext, origin: string, report: (problem: string) => void): void {
  context.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") report(`${message.type()}: ${message.text()}`);
  });
  context.on("weberror", (error) => report(`exception: ${error.error().stack ?? error.error().message}`));
  context.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith(`blob:${origin}/`))
      report(`request to another origin: ${url}`);
  });
  context.on("dialog", (dialog) => {
    report(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
}

/** What the pages of a failed test looked like. */
async function keepPictures(context: BrowserContext, test: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-failed-test-"));
  for (const [index, page] of context.pages().entries()) {
    const path = join(folder, `${index + 1}.png`);
    await page.screenshot({ path }).catch(() => {});
    console.error(`${test}: ${page.url()} looked like ${path}`);
  }
}

/** How many clicks the work takes; typing is free. */
export async function clicksOf(page: Page, work: () => Promise<void>): Promise<number> {
  const count = async () => Number(await page.evaluate(`sessionStorage.getItem("test.presses")`));
  const before = await count();
  await work();
  return (await count()) - before;
}
