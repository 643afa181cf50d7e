/**
 * The first days of a user: a welcome immediately, a reminder two days later, and after another week onboarding is
 * over. The user is loaded again for each step, so that a reminder goes to the current address.
 */
import { Workflow } from "pawl";
import { mailer, type User, users } from "./app.js";

export class SignupWorkflow extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);

  static {
    this.step("send_welcome_email", (w) => mailer.welcome(w.idempotencyKey, w.hero));

    this.step("send_reminder", { wait: "2 days" }, (w) => mailer.remind(w.idempotencyKey, w.hero));

    this.step("complete_onboarding", { wait: "7 days" }, (w) => users.update(w.hero.id, { onboardingCompleted: true }));
  }
}
