/**
 * Premium customers get the same onboarding and more: a personal contact before anything else, a gift the day after the
 * welcome, and a warmer welcome. Only the differences are declared here; Onboarding does not know about them.
 */
import { service } from "./app.js";
import { Onboarding } from "./onboarding.js";

export class PremiumOnboarding extends Onboarding {
  static {
    // One more reason to cancel, in addition to the inherited ones.
    this.cancelIf("subscriptionExpired");
    // Another queue; the priority is inherited.
    this.options({ queue: "premium" });

    this.step("assign_manager", { beforeStep: "send_welcome" }, (w) =>
      service.give(w.idempotencyKey, "manager", w.hero),
    );
    this.step("send_gift", { afterStep: "send_welcome", wait: "1 day" }, (w) =>
      service.give(w.idempotencyKey, "gift", w.hero),
    );
    this.step("call", { wait: "2 weeks" }, (w) => service.give(w.idempotencyKey, "call", w.hero));
  }

  get subscriptionExpired(): boolean {
    return this.hero.subscriptionExpired;
  }

  override async send_welcome(): Promise<void> {
    await service.give(this.idempotencyKey, "premium welcome", this.hero);
  }
}
