/**
 * An order: reserve the goods, take the money, wait for an approval, ship. Without approval within a week everything is
 * returned. The process may die anywhere in here; the next worker continues where it stopped.
 */
import { PermanentError, signal, workflow } from "pawl";
import type { Shop } from "./shop.js";

export interface Order {
  readonly id: string;
  readonly card: string;
  readonly lines: readonly { readonly sku: string; readonly quantity: number; readonly cents: number }[];
}

export type Outcome =
  | { readonly status: "shipped"; readonly parcel: string; readonly approvedBy: string }
  | { readonly status: "refunded" | "declined" };

const approved = signal<{ by: string }>("approved");

export const orderWorkflow = (shop: Shop) =>
  workflow("order", async (ctx, order: Order): Promise<Outcome> => {
    const cents = await ctx.step("validate", () => totalOf(order));

    await ctx.step("reserve_stock", (step) => shop.warehouse.reserve(step.idempotencyKey, order));

    // The provider gets the same key with every attempt, so that a charge whose answer was lost is not made twice.
    const charge = await ctx
      .step("charge", (step) => shop.payments.charge(step.idempotencyKey, order.card, cents), {
        retry: { attempts: 5, initial: "2s", factor: 2 },
        timeout: "30s",
        input: { card: order.card, cents },
      })
      .catch(unlessDeclined);
    if (charge === null) {
      await ctx.step("release_stock", (step) => shop.warehouse.release(step.idempotencyKey, order));
      return { status: "declined" };
    }

    // The shop's own table, in the same database: this row and the record of the step are written together, or neither
    // is.
    await ctx.transaction("enter_payment", (tx) => shop.books.enter(tx, { order: order.id, cents }));

    const approval = await ctx.waitForSignal(approved, { timeout: "7 days" });
    if (approval === null) {
      await ctx.step("refund", (step) => shop.payments.refund(step.idempotencyKey, charge));
      await ctx.transaction("enter_refund", (tx) => shop.books.enter(tx, { order: order.id, cents: -cents }));
      await ctx.step("release_stock", (step) => shop.warehouse.release(step.idempotencyKey, order));
      return { status: "refunded" };
    }

    const parcel = await ctx.step("ship", (step) => shop.warehouse.ship(step.idempotencyKey, order));
    return { status: "shipped", parcel, approvedBy: approval.by };
  });

function totalOf({ id, lines }: Order): number {
  if (lines.length === 0) throw new PermanentError(`Order ${id} is empty.`);
  return lines.reduce((sum, { quantity, cents }) => sum + quantity * cents, 0);
}

/** A declined card is an outcome; any other error that a retry cannot help ends the run. */
function unlessDeclined(error: unknown): null {
  if (error instanceof PermanentError) return null;
  throw error;
}
