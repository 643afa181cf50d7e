/** Whatever users store is shown as text: nothing of it runs, becomes an element, or hides what it is. */
import { PermanentError, workflow } from "pawl";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { endOfSuite } from "../support/end-of-suite.js";
import { until } from "../support/waiting.js";
import { inBrowser } from "./support/browser.js";
import { scrollsSideways, settled, visit } from "./support/screens.js";
import { type ServedDashboard, serveDashboard } from "./support/served-dashboard.js";

/** Names that may be anything but control characters; a person must see them as they are. */
const names = {
  markup: `<img src=x onerror="document.body.dataset.injected=1" data-injected>`,
  script: `</script><script data-injected>document.body.dataset.injected = 1</script>`,
  bidi: "photo\u202egnp.exe\u200b",
  prototype: "__proto__",
  template: "{{constructor.constructor('injected')()}}",
  long: "n".repeat(190),
} as const;
/** How the dashboard must write them. */
const shown: Readonly<Record<keyof typeof names, string>> = {
  ...names,
  bidi: "photo\\u202egnp.exe\\u200b",
};

const hostileText = `${names.markup}\u0007\u001b[31m\u202e\r\n<script data-injected>1</script>`;
const megabyte = "<b data-injected>".repeat(60_000);

function hostileWorkflow(name: string) {
  return workflow(name, async (ctx, _input: unknown) => {
    await ctx.step(name, () => ({ [name]: name, text: hostileText }));
    await ctx.waitForSignal(name);
    await ctx.step(`fail ${name}`, () => {
      const error = new PermanentError(`${hostileText} ${"<i data-injected>".repeat(2_000)}`, {
        cause: new TypeError(hostileText),
      });
      error.stack = `${hostileText}\n    at ${names.markup} (file:///x.js:1:1)`;
      throw error;
    });
  });
}

const echo = workflow("echo", async (_ctx, input: unknown) => input);

inBrowser(() => {
  let served: ServedDashboard;
  const waiting = new Map<string, string>();
  const failed = new Map<string, string>();
  let large: string;

  const onEnd = endOfSuite();
  beforeAll(async () => {
    const registered = Object.values(names).map(hostileWorkflow);
    const authorize = () => ({ user: names.markup, access: "all" as const });
    const dashboard = { label: names.markup.slice(0, 60), title: names.script.slice(0, 60) };
    served = await serveDashboard({ registered: [...registered, echo], onEnd, authorize, dashboard });
    const { pawl } = served;
    const reaches = (id: string, status: string) => until(async () => (await pawl.run(id).status()) === status);
    for (const [kind, name] of Object.entries(names)) {
      const definition = registered.find((one) => one.name === name) as (typeof registered)[number];
      const start = (no: number) =>
        pawl.start(
          definition,
          JSON.parse(`{ "__proto__": { "injected": 1 }, ${JSON.stringify(name)}: ${JSON.stringify(hostileText)} }`),
          {
            ...{ tags: [name], hero: { type: name, id: `${name}${no}` }, idempotencyKey: `${name}${no}` },
            ...{ by: name, reason: name },
          },
        );
      const [first, second] = [await start(1), await start(2)];
      await reaches(first.id, "waiting");
      await first.signal(`other ${name}`, { [name]: hostileText }, { by: name, reason: hostileText });
      await second.signal(name, hostileText, { by: name, reason: hostileText });
      await reaches(second.id, "failed");
      waiting.set(kind, first.id);
      failed.set(kind, second.id);
    }
    const run = await pawl.start(echo, { text: megabyte.slice(0, 1_000_000) });
    await run.result();
    large = run.id;
  });

  const harmOf = async (page: Page, where: string): Promise<string[]> => {
    const found = (await page.evaluate(`({
      injected: document.querySelectorAll("[data-injected]").length + ("injected" in document.body.dataset ? 1 : 0),
      polluted: ({}).injected ?? 0,
      hidden: /.{0,40}[\\u0000-\\u0008\\u000b-\\u001f\\u200b\\u202e]/.exec(document.body.innerText + document.title)?.[0] ?? 0,
    })`)) as Record<string, unknown>;
    const harm: Record<string, unknown> = { ...found, "scrolls sideways": await scrollsSideways(page) };
    return Object.entries(harm).flatMap(([name, value]) =>
      value === 0 || value === false ? [] : [`${where}: ${name} ${JSON.stringify(value)}`],
    );
  };
  const expectHarmless = async (page: Page, where: string) => expect(await harmOf(page, where)).toEqual([]);

  test("on the screens of the navigation", async () => {
    const page = await served.open("/");
    await settled(page);
    const paths = ["/", "/runs", "/workflows", "/errors", "/queues", "/workers", "/database"];
    const harm: string[] = [];
    for (const path of paths) {
      await visit(page, path);
      harm.push(...(await harmOf(page, path)));
    }
    expect(harm).toEqual([]);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Find anything" }).fill("photo");
    await page.getByRole("option", { name: shown.bidi }).first().waitFor();
    await expectHarmless(page, "the palette");
  });

  test("on the list of runs, in workflows, and in what is searched for", async () => {
    const page = await served.open("/runs");
    await settled(page);
    const main = page.getByRole("main");
    for (const [kind, text] of Object.entries(shown)) {
      if (kind !== "long") await main.getByText(text).first().waitFor();
      await visit(page, `/workflows/${encodeURIComponent(names[kind as keyof typeof names])}`);
      await expectHarmless(page, `the workflow ${kind}`);
      await page.getByRole("heading", { level: 1, name: text }).waitFor();
      await visit(page, `/runs?q=${encodeURIComponent(names[kind as keyof typeof names])}`);
      await expectHarmless(page, `the search for ${kind}`);
      await visit(page, "/runs");
    }
  });

  for (const kind of Object.keys(names) as (keyof typeof names)[])
    test(`on the pages of runs: ${kind}`, async () => {
      const page = await served.open(`/runs/${failed.get(kind)}`, { width: kind === "long" ? 390 : 1280 });
      await settled(page);
      const step = `fail ${names[kind]}`;
      const parts = ["", "?tab=graph", "?tab=log", "?tab=data", "?tab=messages", `?step=${encodeURIComponent(step)}`];
      const harm: string[] = [];
      for (const id of [failed.get(kind), waiting.get(kind)])
        for (const part of parts) {
          await visit(page, `/runs/${id}${part}`);
          await page.getByRole("heading", { level: 1, name: shown[kind] }).waitFor();
          harm.push(...(await harmOf(page, `${kind} ${part}`)));
        }
      expect(harm).toEqual([]);
    });

  test("a dialog about a hostile run", async () => {
    const page = await served.open(`/runs/${waiting.get("bidi")}`);
    await settled(page);
    await page.getByRole("button", { name: "Signal", exact: true }).click();
    await page.getByRole("dialog", { name: shown.bidi }).waitFor();
    await expectHarmless(page, "the dialog");
  });

  test("a megabyte of text is shown in parts, on demand", async () => {
    const page = await served.open(`/runs/${large}?tab=data`);
    await settled(page);
    await expectHarmless(page, "a megabyte that was left out");
    const length = () => page.evaluate("document.body.innerText.length") as Promise<number>;
    expect(await length()).toBeLessThan(100_000);
    await page
      .getByRole("button", { name: /load|show/i })
      .first()
      .click();
    await settled(page);
    await expectHarmless(page, "a megabyte");
    expect(await length()).toBeLessThan(200_000);
  });
});
