/** All addresses of the dashboard with something to see, for what must hold on every screen. */
import type { Page } from "playwright-core";
import type { World } from "./world.js";

/** The screens of the navigation: their names, paths and shortcuts. */
export const navigation = [
  { name: "Home", path: "/", keys: "g h" },
  { name: "Runs", path: "/runs", keys: "g r" },
  { name: "Workflows", path: "/workflows", keys: "g w" },
  { name: "Errors", path: "/errors", keys: "g e" },
  { name: "Queues", path: "/queues", keys: "g q" },
  { name: "Limits", path: "/limits", keys: "g l" },
  { name: "Schedules", path: "/schedules", keys: "g s" },
  { name: "Workers", path: "/workers", keys: "g k" },
  { name: "Database", path: "/database", keys: "g d" },
] as const;

export const runTabs = ["Timeline", "Graph", "Log", "Data", "Messages"] as const;

export function everyAddress({ runs }: Pick<World, "runs">): readonly string[] {
  return [
    ...navigation.map(({ path }) => path),
    ...runTabs.map((tab) => `/runs/${runs.waiting}?tab=${tab.toLowerCase()}`),
    ...["failed", "parent", "failedGraph", "executing", "pausedByError", "withoutWorker"].map(
      (name) => `/runs/${runs[name as keyof typeof runs]}`,
    ),
    `/runs/${runs.failedGraph}?tab=graph`,
    `/runs/${runs.failed}?tab=data`,
    `/runs/${runs.failed}?step=ship`,
    `/runs/${runs.failed}?tab=log&event=3`,
    "/runs?q=status%3Apaused",
    "/workflows/order",
    "/workflows/order?start=1",
    "/workflows/checkout",
    "/workflows/Onboarding",
    "/no/such/page",
  ];
}

/** Goes to another address as a link does, without loading the page again. */
export async function visit(page: Page, address: string): Promise<void> {
  await page.evaluate(`
    history.pushState(null, "", new URL(${JSON.stringify(address.slice(1))}, document.baseURI).href);
    dispatchEvent(new PopStateEvent("popstate"));
  `);
  await settled(page);
}

/** Resolves when the page has read what it shows, and its stream of changes is open. */
export async function settled(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Live", exact: true }).waitFor();
  // Components that have appeared ask for data after the next frame.
  await page.evaluate(`(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    for (let quiet = 0; quiet < 4; ) {
      await frame();
      quiet = testIsQuiet() ? quiet + 1 : 0;
    }
  })()`);
}

/** Whether the page itself scrolls sideways, which no width of the window may cause. */
export async function scrollsSideways(page: Page): Promise<boolean> {
  return page.evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth`);
}
