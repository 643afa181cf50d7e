/** Figures per minute: what began, ended and was paused, by an error or by an operator. */
import { connect, Workflow, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";

class Fragile extends Workflow {
  static {
    this.step("fail", () => {
      throw new Error("no");
    });
  }
}
const echo = workflow("echo", async (ctx) => ctx.step("say", () => "hello"));
const patient = workflow("patient", (ctx) => ctx.waitForSignal("go"));

forEachStore(
  (kind) => {
    test("pauses count once, by an error as well as by an operator", async () => {
      const database = await testDatabase(kind);
      onTestFinished(() => database.drop());
      const pawl = await connect(database.url, { logger: silent });
      await pawl.worker({ workflows: [Fragile, echo, patient] }).start();
      const fragile = [await pawl.start(Fragile), await pawl.start(Fragile)];
      await (await pawl.start(echo)).result();
      const waiting = await pawl.start(patient);
      await until(async () => (await waiting.status()) === "waiting");
      await waiting.pause("later");
      for (const run of [...fragile, waiting]) await until(async () => (await run.status()) === "paused");
      await pawl.close(); // Writes what was counted.

      const reader = await connect(database.url, { logger: silent });
      onTestFinished(() => reader.close());
      const total = { began: 0, completed: 0, failed: 0, canceled: 0, paused: 0 };
      for (const minute of await reader.figures())
        for (const name of Object.keys(total) as (keyof typeof total)[]) total[name] += minute[name];
      expect(total).toEqual({ began: 4, completed: 1, failed: 0, canceled: 0, paused: 3 });
    });
  },
  ["sqlite", "postgres", "mysql"],
);
