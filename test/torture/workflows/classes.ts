/** Workflows in class style: a hero, waits, a resumable step over items, tasks, and jobs that run elsewhere. */
import { Workflow } from "pawl";
import { type Bench, failingWork, work } from "./tools.js";

export function classWorkflows(bench: Bench) {
  const body =
    (step: string, ms?: number) =>
    (w: Workflow<any, any, any>): Promise<string> =>
      work(bench, w.runId, step, w, ms);

  class Sweep extends Workflow<{ id: string }, { items: number }> {
    static readonly heroType = "Account";
    static loadHero = (id: string) => ({ id });
    static {
      this.options({ retry: { initial: 50, factor: 2, max: 400 } });
      this.step("open", body("open"));
      this.resumableStep("sweep", { maxIterations: 12 }, async (w, iter) => {
        await iter.over(
          Array.from({ length: w.input.items }, (_, item) => item),
          async (item) => {
            const { runId: run } = w;
            bench.ledger.write({ kind: "item", run, step: "sweep", item, pid: process.pid, at: Date.now() });
            await new Promise((resolve) => setTimeout(resolve, 5));
          },
        );
      });
      this.step("flaky", { wait: 150, onException: "reattempt", maxReattempts: 20 }, async (w) => {
        if (w.executionId.endsWith(":1")) await failingWork(bench, w.runId, "flaky", w, new Error("a planned failure"));
        return body("flaky")(w);
      });
      this.step("close", body("close"));
    }
  }

  class Assembly extends Workflow<unknown, { n: number }> {
    static {
      this.options({ onException: "reattempt", retry: { initial: 50, factor: 2, max: 400 } });
      this.step("begin", body("begin"));
      this.task("inspect", { dependsOn: "begin" }, body("inspect", 1_000));
      this.task("press", { dependsOn: "begin", job: "Press", args: (w: Workflow<any, any>) => w.input });
      this.task("paint", { dependsOn: "press", job: "Paint", args: (w: Workflow<any, any>) => w.input });
      this.step("join", { dependsOn: ["inspect", "paint"] }, async (w) => {
        await w.sleep("dry", 100);
        await w.step("note", (tools) => work(bench, w.runId, "join/note", tools));
      });
      this.step("done", body("done"));
    }
  }

  return [Sweep, Assembly] as const;
}
