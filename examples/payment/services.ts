/** The services that a payment needs, as small fakes whose failures a test can choose. */
import { Effects } from "../effects.js";

export interface Order {
  readonly id: string;
  readonly card: string;
  readonly cents: number;
  readonly items: number;
}

export class InvalidCard extends Error {
  override readonly name = "InvalidCard";
}

export class RateLimited extends Error {
  override readonly name = "RateLimited";
  readonly retryAfter: string;

  constructor(retryAfter: string) {
    super("429 Too Many Requests");
    this.retryAfter = retryAfter;
  }
}

class PaymentGateway {
  readonly effects = new Effects<string>();
  /** The errors of the next requests, one after the other. */
  failures: Error[] = [];
  /** Down until a test repairs it. */
  down = false;

  async charge(key: string, order: Order): Promise<void> {
    const failure = this.down ? new Error("503 Service Unavailable") : this.failures.shift();
    if (failure !== undefined) throw failure;
    if (order.card === "stolen") throw new InvalidCard("The card is not valid.");
    this.effects.once(key, `${order.cents} for order ${order.id}`);
  }
}

/** A service with one operation, which may be out of order. */
class Service {
  readonly effects = new Effects<string>();
  readonly #complaint: string;
  broken = false;

  constructor(complaint: string) {
    this.#complaint = complaint;
  }

  async serve(key: string, what: string): Promise<void> {
    if (this.broken) throw new Error(this.#complaint);
    this.effects.once(key, what);
  }
}

class Orders {
  readonly #rows = new Map<string, Order>();

  async find(id: string): Promise<Order | undefined> {
    return this.#rows.get(id);
  }

  save(order: Order): void {
    this.#rows.set(order.id, order);
  }
}

export const orders = new Orders();
export const gateway = new PaymentGateway();
export const receipts = new Service("The mail server does not answer.");
export const inventory = new Service("Out of stock.");
