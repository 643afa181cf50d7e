/** Chromium, started once for all files that a process of the tests executes. It ends with that process. */
import { type Browser, chromium as driver } from "playwright-core";
import { test } from "vitest";
import { chromium } from "../../../scripts/engines/chromium.mjs";
import { isLeftOut } from "../../support/databases.js";

/** Waits in a page end with the fact that they wait for. Only what hangs takes so long; who writes a test may be less patient. */
export const patienceMs = Number(process.env.PAWL_TEST_PATIENCE_MS ?? 60_000);

/**
 * The browser loads two pages of its own for the address bar of each window, although no person sees the window: they took
 * more processor time than the dashboard. The others are of those that Playwright disables; its list is replaced by this one.
 */
const disabledFeatures = [
  ...["WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "AimEnabled"],
  ...[
    "PaintHolding",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
  ],
  ...["AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "LensOverlay", "MediaRouter"],
  ...["ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "PreconnectToSearch"],
];

let launched: Promise<Browser> | null = null;

export async function browser(): Promise<Browser> {
  // It may have crashed, or not have started, in an earlier file. Another test may have noticed that as well.
  const former = launched;
  if (!(await former?.catch(() => null))?.isConnected() && launched === former) launched = null;
  launched ??= launch();
  return launched;
}

async function launch(): Promise<Browser> {
  const executablePath = process.env.PAWL_TEST_CHROMIUM || chromium.findBinaries()?.server;
  if (executablePath === undefined)
    throw new Error(
      "Chromium is not installed: name its program in PAWL_TEST_CHROMIUM, or call npm test, which installs it.",
    );
  return driver.launch({
    executablePath,
    timeout: patienceMs,
    args: [
      // Root may not use the sandbox; the pages are our own.
      "--no-sandbox",
      // The shared memory of containers is small.
      "--disable-dev-shm-usage",
      "--disable-gpu",
      // What the browser itself would ask the network for.
      ...["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
      `--disable-features=${disabledFeatures.join()}`,
    ],
  });
}

/** Defines tests that use a browser, unless the person who runs them asked to leave these out. */
export function inBrowser(define: () => void): void {
  if (isLeftOut("chromium")) test("was left out, as PAWL_TEST_WITHOUT asks: nothing is tested in a browser", () => {});
  else define();
}
