import { Workflow } from "pawl";
import { expect, test } from "vitest";
import { start } from "../function-style/support.js";

interface User {
  name: string;
  deactivated: boolean;
  unsubscribed: boolean;
}
const users = new Map<string, User>([["42", { name: "Ada", deactivated: false, unsubscribed: false }]]);
const sent: string[] = [];

class Onboarding extends Workflow<User, { ids: number[] }, string> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.get(id);
  static {
    this.options({ queue: "mail", priority: 10, onException: "pause" });
    this.cancelIf((w) => w.hero.deactivated);
    this.step("send_welcome", async (w) => void sent.push(`welcome ${w.hero.name}`));
    this.step("send_reminder", { wait: "2 days", skipIf: "unsubscribed", onException: "reattempt", maxReattempts: 5 });
    this.resumableStep("notify_all", { maxIterations: 2 }, async (w, iter) => {
      await iter.over(w.input.ids, async (id) => void sent.push(`notify ${id}`));
    });
    this.step("audit", { afterStep: "send_welcome" }, async (w) => {
      await w.step("one", () => 1);
      await w.sleep("nap", "1 hour");
      sent.push("audit");
    });
    this.step({ wait: "7 days" }, async (w) => w.finish("done"));
  }
  get unsubscribed() {
    return this.hero.unsubscribed;
  }
  async send_reminder() {
    sent.push("reminder");
  }
}

test("goes through", async () => {
  const t = await start(Onboarding);
  const run = await t.pawl.start(Onboarding, { ids: [1, 2, 3, 4, 5] }, { hero: { type: "User", id: "42" } });
  await t.settle();
  console.log(await run.get());
  await t.speedrun(run);
  console.log(sent);
  console.log(
    (await run.executions()).map(({ step, attempt, state, outcome, continuesFrom }) => [
      step,
      attempt,
      state,
      outcome,
      continuesFrom,
    ]),
  );
  console.log((await run.history()).map((e) => `${e.seq} ${e.type} ${e.node} ${JSON.stringify(e.data)}`));
  console.log(await run.progress());
  expect(await run.result()).toBe("done");
  expect(await t.pawl.verify()).toMatchObject({ differences: [] });
});
