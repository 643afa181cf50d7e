/** The workflow of the demo: six steps with an effect on the outside world each, and a short sleep in the middle. */
import { setTimeout as work } from "node:timers/promises";
import { type WorkflowContext, workflow } from "pawl";
import type { Ledger } from "./ledger.js";

export const stepNames = ["reserve", "charge", "pack", "label", "ship", "notify"] as const;

export const orderWorkflow = (ledger: Ledger) =>
  workflow("order", async (ctx, order: { readonly number: number }) => {
    await act(ctx, ledger, "reserve");
    await act(ctx, ledger, "charge");
    await ctx.sleep("until_picked", "1s");
    await act(ctx, ledger, "pack");
    await act(ctx, ledger, "label");
    await act(ctx, ledger, "ship");
    await act(ctx, ledger, "notify");
    return `order ${order.number} is on its way`;
  });

/**
 * The effect comes first and the answer a little later: a process that is killed in between has acted without recording
 * it.
 */
function act(ctx: WorkflowContext, ledger: Ledger, step: (typeof stepNames)[number]): Promise<void> {
  return ctx.step(step, async ({ idempotencyKey }) => {
    ledger.write({ run: ctx.runId, step, key: idempotencyKey, pid: process.pid });
    await work(400 + Math.random() * 1_200);
  });
}
