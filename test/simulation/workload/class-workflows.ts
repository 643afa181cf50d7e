/** Class style: a chain with a hero, conditions, waits and a resumable step over items; and a graph of steps, tasks and jobs. */
import { job, Workflow } from "../../../src/index.js";
import type { Bench, BodyPlan } from "./bench.js";

export interface ClassInput {
  /** How many items the resumable step has. */
  readonly items: number;
  readonly body: BodyPlan;
  /** What happens after an exception in the step "flaky". */
  readonly skips: boolean;
}

type AnyInstance = Workflow<any, ClassInput, unknown>;

const retry = { initial: 60, factor: 2, max: 500 } as const;

export function classWorkflows(bench: Bench, { press, paint }: ReturnType<typeof jobsOf>) {
  const body = (step: string, plan?: BodyPlan) => (w: AnyInstance) =>
    bench.body(w.runId, step, plan ?? w.input.body, w.attempt);

  class Sweep extends Workflow<{ id: string }, ClassInput, unknown> {
    static readonly heroType = "Account";
    static loadHero = (id: string) => ({ id });
    static {
      this.options({ retry });
      this.step("open", { onException: "reattempt", maxReattempts: 4 }, body("open"));
      this.resumableStep("sweep", { maxIterations: 7 }, async (w, iter) => {
        await iter.over(
          Array.from({ length: w.input.items }, (_, item) => item),
          (item) => bench.item(w.runId, "sweep", item),
        );
      });
      this.step("unneeded", { skipIf: (w) => w.input.skips }, body("unneeded", { ms: 10 }));
      // Without a policy, an exception pauses the run.
      this.step("flaky", { wait: 300 }, body("flaky", { ms: 30, fails: 1 }));
      this.step("nap", async (w) => {
        await w.sleep("doze", 400);
        return w.step("dream", (tools) => bench.body(w.runId, "nap/dream", { ms: 20 }, tools.attempt));
      });
      this.step("close", body("close"));
    }
  }

  class Assembly extends Workflow<unknown, ClassInput, unknown> {
    static {
      this.options({ onException: "reattempt", maxReattempts: 10, retry });
      this.step("begin", body("begin"));
      this.task("inspect", { dependsOn: "begin" }, body("inspect"));
      this.task("press", { dependsOn: "begin", job: press, args: (w) => w.input.body });
      this.task("paint", { dependsOn: "press", job: paint, args: (w) => w.input.body });
      this.step("join", { dependsOn: ["inspect", "paint"] }, async (w) => {
        await w.sleep("dry", 200);
        return w.step("note", (tools) => bench.body(w.runId, "join/note", { ms: 20 }, tools.attempt));
      });
      this.step("done", body("done"));
    }
  }

  return { sweep: Sweep, assembly: Assembly };
}

export function jobsOf(bench: Bench) {
  const press = job(
    "Press",
    async (plan: BodyPlan, { attempt, ctx }) => {
      const token = await ctx.step("stamp", (tools) => bench.body(ctx.runId, "stamp", { ms: plan.ms }, tools.attempt));
      if (attempt === 1 && plan.fails !== undefined) throw new Error("a planned failure of a job");
      return token;
    },
    { retry: { attempts: 5, ...retry } },
  );
  const paint = job(
    "Paint",
    async (plan: BodyPlan, { ctx }) => {
      await ctx.sleep("dry", 150);
      return ctx.step("coat", (tools) => bench.body(ctx.runId, "coat", plan, tools.attempt));
    },
    { retry: { attempts: 5, ...retry } },
  );
  return { press, paint };
}
