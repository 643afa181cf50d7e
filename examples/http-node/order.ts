/** The workflow that the programs of the other folders, and those in Python and shell, start and signal over HTTP. */
import { PermanentError, workflow } from "pawl";

export interface Order {
  readonly sku: string;
}

export interface Shipment {
  readonly shelf: string;
  readonly approvedBy: string;
}

export const order = workflow("order", async (ctx, { sku }: Order): Promise<Shipment> => {
  const shelf = await ctx.step("reserve", () => `shelf of ${sku}`);
  const approval = await ctx.waitForSignal<{ by: string }>("approved", { timeout: "7 days" });
  if (approval === null) throw new PermanentError("The order was not approved.");
  return { shelf, approvedBy: approval.by };
});
