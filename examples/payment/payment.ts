/**
 * A payment, and how it handles each kind of failure: a gateway that is down is retried, a bad card cancels the
 * payment, a receipt that cannot be sent is skipped, and missing goods cancel the rest.
 */
import { Workflow } from "pawl";
import { gateway, InvalidCard, inventory, type Order, orders, RateLimited, receipts } from "./services.js";

export class PaymentWorkflow extends Workflow<Order> {
  static readonly heroType = "Order";
  static loadHero = (id: string) => orders.find(id);

  static {
    // After three failed reattempts the run is paused until an operator resumes it.
    this.step("initiate_payment", { onException: "reattempt", maxReattempts: 3 });

    this.step("send_receipt", { onException: "skip" }, (w) =>
      receipts.serve(w.idempotencyKey, `receipt for order ${w.hero.id}`),
    );

    this.step("update_inventory", { onException: "cancel" }, (w) =>
      inventory.serve(w.idempotencyKey, `${w.hero.items} items of order ${w.hero.id}`),
    );
  }

  async initiate_payment(): Promise<void> {
    try {
      // The same key with every attempt, so that a charge whose answer was lost is not made twice.
      await gateway.charge(this.idempotencyKey, this.hero);
    } catch (error) {
      if (error instanceof InvalidCard) this.cancel(error.message);
      if (error instanceof RateLimited) this.reattempt({ wait: error.retryAfter });
      throw error;
    }
  }
}
