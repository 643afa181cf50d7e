/** The application around onboarding, with small fakes: its table of customers, and what it does for them. */
import { Effects } from "../effects.js";

export interface Customer {
  readonly id: string;
  readonly name: string;
  readonly deactivated: boolean;
  readonly subscriptionExpired: boolean;
}

class Customers {
  readonly #rows = new Map<string, Customer>();

  async find(id: string): Promise<Customer | undefined> {
    return this.#rows.get(id);
  }

  /** Adds the customer, or changes it. */
  save(customer: Customer): void {
    this.#rows.set(customer.id, customer);
  }
}

/** Everything that is done for a customer: mails, gifts, appointments. */
class Service {
  readonly effects = new Effects<string>();

  async give(key: string, what: string, customer: Customer): Promise<void> {
    this.effects.once(key, `${what} for ${customer.name}`);
  }
}

export const customers = new Customers();
export const service = new Service();
