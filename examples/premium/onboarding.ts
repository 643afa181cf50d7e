/** What all workflows about customers have in common, and the onboarding that every customer gets. */
import { Workflow } from "pawl";
import { type Customer, customers, service } from "./app.js";

abstract class BaseWorkflow extends Workflow<Customer> {
  static readonly heroType = "Customer";
  static loadHero = (id: string) => customers.find(id);

  static {
    // Subclasses inherit this condition, and use this queue unless they set another.
    this.cancelIf((w) => w.hero.deactivated);
    this.options({ queue: "workflows", priority: 5 });
  }
}

export class Onboarding extends BaseWorkflow {
  static {
    this.step("send_welcome");
    this.step("send_tips", { wait: "3 days" }, (w) => service.give(w.idempotencyKey, "tips", w.hero));
  }

  async send_welcome(): Promise<void> {
    await service.give(this.idempotencyKey, "welcome", this.hero);
  }
}
