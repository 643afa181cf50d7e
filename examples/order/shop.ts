/** The world around an order: a payment provider and a warehouse (small fakes), and the shop's own books. */
import { PermanentError, TransientError } from "pawl";
import { Effects } from "../effects.js";
import type { Books } from "./books.js";
import type { Order } from "./order.js";

export class Payments {
  readonly effects = new Effects<{ readonly kind: "charge" | "refund"; readonly cents: number }>();
  /** How many of the next requests find the provider down. */
  outages = 0;

  async charge(key: string, card: string, cents: number): Promise<{ readonly id: string; readonly cents: number }> {
    if (this.outages > 0) {
      this.outages -= 1;
      throw new TransientError("503 from the payment provider", { retryAfter: "1 minute" });
    }
    if (card === "declined") throw new PermanentError("The card was declined.");
    this.effects.once(key, { kind: "charge", cents });
    return { id: key, cents };
  }

  async refund(key: string, charge: { readonly cents: number }): Promise<void> {
    this.effects.once(key, { kind: "refund", cents: charge.cents });
  }
}

export class Warehouse {
  readonly effects = new Effects<{ readonly kind: "reserve" | "release" | "ship"; readonly order: string }>();

  async reserve(key: string, order: Order): Promise<void> {
    this.effects.once(key, { kind: "reserve", order: order.id });
  }

  async release(key: string, order: Order): Promise<void> {
    this.effects.once(key, { kind: "release", order: order.id });
  }

  async ship(key: string, order: Order): Promise<string> {
    this.effects.once(key, { kind: "ship", order: order.id });
    return `parcel-${order.id}`;
  }
}

export interface Shop {
  readonly payments: Payments;
  readonly warehouse: Warehouse;
  readonly books: Books;
}
