/** Fan-out in a graph: a step maps a child over the output of another step. */
import { graph, type StepContext, step, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { start, world } from "../support/virtual-worlds.js";

let sizes: string[] = [];
const resize = workflow("resize", async (ctx, image: { name: string; width: number }) =>
  ctx.step("resize", () => {
    sizes.push(`${image.name}@${image.width}`);
    return `${image.name}-${image.width}.png`;
  }),
);
const list = step("list", (ctx: StepContext<{ album: string }>) => [`${ctx.input.album}/1`, `${ctx.input.album}/2`]);
const thumbnails = step("thumbnails", (ctx) =>
  ctx.map(
    resize,
    ctx.output(list).map((name) => ({ name, width: 80 })),
    { concurrency: 1 },
  ),
);
const large = step("large", (ctx) =>
  ctx.map(
    resize,
    ctx.output(list).map((name) => ({ name, width: 800 })),
  ),
);
const publish = step("publish", (ctx) => [...ctx.output(thumbnails), ...ctx.output(large)].sort());
const album = graph("album", [list, thumbnails.after(list), large.after(list), publish.after(thumbnails, large)]);

const published = ["a/1-80.png", "a/1-800.png", "a/2-80.png", "a/2-800.png"];

forMemoryAnd("sqlite", (kind) => {
  test("children run independently, two maps run in parallel, and the parent joins them", async () => {
    sizes = [];
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const { settle } = await w.worker([album, resize]);
    const run = await w.pawl.start(album, { album: "a" });
    await settle();
    expect(await run.result()).toEqual(published);
    expect(sizes.sort()).toEqual(["a/1@80", "a/1@800", "a/2@80", "a/2@800"]);
    expect((await w.pawl.runs({ workflow: resize })).runs).toHaveLength(4);
    expect(await w.pawl.verify()).toMatchObject({ differences: [] });
  });
});

test("crashes of the parent's worker do not change the result", async () => {
  const t = await start(album, resize);
  const report = await t.crashTest(album, { album: "a" }, { points: 30 });
  expect(report.output).toEqual(published);
});

test("a crash between the end of a child and the start of the next one loses no child, in function style too", async () => {
  const one = workflow("one-by-one", async (ctx, count: number) => {
    const items = Array.from({ length: count }, (_, n) => ({ name: `i${n}`, width: 1 }));
    return [...(await ctx.map(resize, items, { concurrency: 1 }))];
  });
  const t = await start(one, resize);
  const report = await t.crashTest(one, 3);
  expect(report.output).toEqual(["i0-1.png", "i1-1.png", "i2-1.png"]);
});

test("a step that is rewound creates its children again; the children of its siblings are not affected", async () => {
  const slow = workflow("slow", async (ctx, n: number) => {
    await ctx.sleep("nap", "1 hour");
    return n;
  });
  let rewinds = 1;
  const patient = step("patient", (ctx) => ctx.run(slow, 1));
  const hasty = step("hasty", async (ctx) => {
    const started = await ctx.start(slow, 2);
    await ctx.sleep("a_moment", "1 minute");
    if (rewinds-- > 0) ctx.reattempt({ rewind: true });
    return started.result();
  });
  const both = graph("both", [patient, hasty]);
  const t = await start(both, slow);
  const run = await t.pawl.start(both);
  await t.speedrun(run);
  expect(await run.result()).toEqual({ patient: 1, hasty: 2 });
  const statuses = (await t.pawl.runs({ workflow: slow })).runs.map(({ status }) => status).sort();
  expect(statuses).toEqual(["canceled", "completed", "completed"]);
  expect(await t.pawl.verify()).toMatchObject({ differences: [] });
});
