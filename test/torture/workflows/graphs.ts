/**
 * Workflows in graph style: concurrent steps, a branch, a saga with compensation; and the jobs of graphs that are built
 * at run time.
 */
import { branch, graph, job, PermanentError, type StepContext, step } from "pawl";
import { type Bench, failingWork, sleep, work } from "./tools.js";

export interface OrderInput {
  readonly large: boolean;
  readonly fails: boolean;
}

const retry = { attempts: 6, initial: 50, factor: 2, max: 500 } as const;

export function graphWorkflow(bench: Bench) {
  const effect = (name: string, ms?: number) => (ctx: StepContext<OrderInput>) =>
    work(bench, ctx.runId, name, { idempotencyKey: ctx.idempotencyKey }, ms);
  const undoing = (name: string) => ({
    retry,
    compensate: async (ctx: { readonly idempotencyKey: string; readonly runId: string }) =>
      void (await work(bench, ctx.runId, `${name}#compensate`, ctx, 60)),
  });

  const validate = step("validate", effect("validate"), { retry });
  const reserve = step("reserve", effect("reserve", 100), undoing("reserve"));
  const fraud = step("fraud", effect("fraud", 150), { retry });
  const ask = step("ask", effect("ask"), { retry });
  const wave = step("wave", effect("wave"), { retry });
  const charge = step("charge", effect("charge"), undoing("charge"));
  const ship = step(
    "ship",
    async (ctx: StepContext<OrderInput>) => {
      if (ctx.input.fails) throw new PermanentError("a planned failure of an order");
      return effect("ship")(ctx);
    },
    { retry },
  );
  return graph("order", [
    validate,
    reserve.after(validate),
    fraud.after(validate),
    branch("route", (ctx: StepContext<OrderInput>) => (ctx.input.large ? "person" : "machine"), {
      person: [ask],
      machine: [wave],
    }).after(fraud),
    charge.after(reserve, ask, wave),
    ship.after(charge),
  ]);
}

export interface JobArgs {
  readonly n: number;
  readonly throws?: boolean;
  /** The longest time that it takes. */
  readonly ms?: number;
}

export function jobsOf(bench: Bench) {
  const press = job(
    "Press",
    async ({ throws, ms }: JobArgs, { run, node, attempt, idempotencyKey }) => {
      const tools = { idempotencyKey };
      if (throws === true && attempt === 1)
        await failingWork(bench, run.id, node.id, tools, new Error("a planned failure of a job"));
      return work(bench, run.id, node.id, tools, ms ?? 80);
    },
    { retry },
  );
  const paint = job(
    "Paint",
    async (_args: JobArgs, { run, node, idempotencyKey, ctx }) => {
      await ctx.sleep("dry", 100);
      const token = await ctx.step("coat", (tools) => work(bench, ctx.runId, "coat", tools, 40));
      await sleep(5);
      return token === undefined ? token : work(bench, run.id, node.id, { idempotencyKey }, 20);
    },
    { retry },
  );
  return [press, paint] as const;
}
