// A process of its own for one map, so that its memory is that of the map.
//
//   node map-process.mjs <url> <children> <maps to warm up with, of a hundred children each>

import { connect, workflow } from "pawl";
import { tell } from "./child.mjs";

const [url, children, warmUp] = process.argv.slice(2);

const child = workflow("growth_map_child", (ctx, n) => ctx.step("part", () => ({ ok: true, total: n })));
const parent = workflow("growth_map_parent", async (ctx, count) => {
  const results = await ctx.map(
    child,
    Array.from({ length: count }, (_, n) => n),
  );
  return results.reduce((sum, { total }) => sum + total, 0);
});

const pawl = await connect(url);
await pawl.worker({ workflows: [parent, child], concurrency: 500 }).start();
// Many small maps: frequent calls make the engine compile the code, and small maps do not enlarge the heap.
for (let n = 0; n < Number(warmUp); n += 1) await map(100);
const rssBefore = process.memoryUsage.rss();
const beganAt = performance.now();
await map(Number(children));
const ms = performance.now() - beganAt;
tell("mapped", { ms, rssMb: process.resourceUsage().maxRSS / 1024, rssBeforeMb: rssBefore / 1024 ** 2 });
await pawl.close();
process.disconnect();

async function map(count) {
  const sum = await (await pawl.start(parent, count)).result();
  if (sum !== (count * (count - 1)) / 2) throw new Error(`A map over ${count} children went wrong: ${sum}`);
}
