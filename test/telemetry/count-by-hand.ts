/** A small scenario, and the figures for it, counted by hand. */
import { PermanentError, workflow } from "pawl";
import { onTestFinished } from "vitest";
import { world } from "../support/virtual-worlds.js";

const pack = workflow("pack", (ctx, n: number) => ctx.step("wrap", () => n));
const ship = workflow("ship", async (ctx, fate: "fine" | "flaky" | "doomed") => {
  await ctx.step("load", ({ attempt }) => {
    if (fate === "flaky" && attempt < 3) throw new Error("the lorry is late");
  });
  await ctx.map(pack, [1, 2]);
  await ctx.sleep("drive", "2 hours");
  await ctx.step("unload", () => {
    if (fate === "doomed") throw new PermanentError("it is all broken");
  });
});

export const expectedCounts = {
  started: { ship: 4, pack: 8 },
  ended: { "ship completed": 2, "ship failed": 1, "ship canceled": 2, "pack completed": 8 },
  /** One run of ship was canceled before it started, so it has no duration. */
  runsTook: { "ship completed": 2, "ship failed": 1, "ship canceled": 1, "pack completed": 8 },
  /** load: 1 + 3 + 1 + 1, unload: 3; wrap: 8. */
  executions: { "ship load": 6, "ship unload": 3, "pack wrap": 8 },
  failures: { "ship load reattempted_by_exception": 2, "ship unload failed_by_exception": 1 },
} as const;

/** Three parcels have been waiting for 90 seconds; there is no worker, and the queue is paused. */
export const expectedQueue = { depth: 3, oldest_age: 90, executing: 0, workers: 0, paused: 1 } as const;

export async function queueScenario() {
  const w = await world();
  const parcel = workflow("parcel", { queue: "post" }, () => {});
  await w.pawl.createWorkflow("idle");
  for (let n = 0; n < 3; n += 1) await w.pawl.start(parcel);
  await w.pawl.pauseQueue("post", "it rains");
  w.clock.moveTo(w.clock.read() + 90_000);
  let looks = 0;
  const queues = () => {
    looks += 1;
    return w.pawl.queues();
  };
  return { pawl: { run: (id: string) => w.pawl.run(id), queues }, looked: () => looks };
}

/** @param listen called before the first run is started */
export async function runScenario(
  listen: (pawl: Awaited<ReturnType<typeof world>>["pawl"]) => { stop(): Promise<void> },
) {
  const w = await world();
  const { stop } = listen(w.pawl);
  onTestFinished(stop);
  const { settle } = await w.worker([ship, pack]);
  for (const fate of ["fine", "flaky", "doomed"] as const) await w.pawl.start(ship, fate);
  const recalled = await w.pawl.start(ship, "fine");
  const never = await w.pawl.start(ship, "fine", { delay: "1 day" });
  await never.cancel();
  await settle();
  await recalled.cancel("the customer called");
  for (let due = await settle(); due !== null; due = await settle()) w.clock.moveTo(due);
  return { ...w, stop };
}
