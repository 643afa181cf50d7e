/** Graph style: steps in parallel, a branch, steps that are undone. */
import { branch, graph, PermanentError, type StepContext, step } from "../../../src/index.js";
import type { Bench, BodyPlan } from "./bench.js";

export interface GraphInput {
  readonly body: BodyPlan;
  readonly isLarge: boolean;
  readonly fails: boolean;
}

const retry = { attempts: 6, initial: 60, factor: 2, max: 500 } as const;

export function graphWorkflow(bench: Bench) {
  const body = (name: string, plan?: BodyPlan) => (ctx: StepContext<GraphInput>) =>
    bench.body(ctx.runId, name, plan ?? ctx.input.body, ctx.attempt);
  const undoing = (name: string) => ({
    retry,
    compensate: async (ctx: { readonly runId: string; readonly attempt: number }) =>
      void (await bench.body(ctx.runId, `${name}#compensate`, { ms: 20 }, ctx.attempt)),
  });
  const validate = step("validate", body("validate"), { retry });
  const reserve = step("reserve", body("reserve", { ms: 80 }), undoing("reserve"));
  const fraud = step("fraud", body("fraud"), { retry });
  const ask = step("ask", body("ask"), { retry });
  const wave = step("wave", body("wave", { ms: 10 }), { retry });
  const charge = step("charge", body("charge", { ms: 40 }), undoing("charge"));
  const ship = step(
    "ship",
    async (ctx: StepContext<GraphInput>) => {
      if (ctx.input.fails) throw new PermanentError("a planned failure of an order");
      return body("ship")(ctx);
    },
    { retry },
  );
  return graph("order", [
    validate,
    reserve.after(validate),
    fraud.after(validate),
    branch("route", (ctx: StepContext<GraphInput>) => (ctx.input.isLarge ? "person" : "machine"), {
      person: [ask],
      machine: [wave],
    }).after(fraud),
    charge.after(reserve, ask, wave),
    ship.after(charge),
  ]);
}
