/** Workflows whose runs have the input of several starts. */
import { type LimitDefinition, type WorkflowContext, workflow } from "../../../src/index.js";
import type { Bench } from "./bench.js";

export interface TokenInput {
  readonly token: string;
  /** The key of the batch. */
  readonly user?: string;
}

const retry = { attempts: 5, initial: 60, factor: 2, max: 500 } as const;

export function gatheringWorkflows(bench: Bench, slots: LimitDefinition) {
  const note = (run: string, inputs: readonly TokenInput[]) =>
    void bench.options.ledger.gatheredInputs.push({ run, tokens: inputs.map(({ token }) => token) });
  const work = (ctx: WorkflowContext<any>, inputs: readonly TokenInput[]) => {
    note(ctx.runId, inputs);
    return ctx.step("work", (tools) => bench.body(ctx.runId, "work", { ms: 60, fails: 1 }, tools.attempt));
  };
  const notes = workflow("notes", { retry }, async (ctx, input: TokenInput) => {
    await work(ctx, [input]);
    return input.token;
  });
  const lists = workflow("lists", { retry }, async (ctx, inputs: TokenInput[]) => {
    await work(ctx, inputs);
    return inputs.map(({ token }) => token);
  });
  const mail = workflow(
    "mail",
    { retry, limits: [slots], batch: { key: "input.user", size: 3, within: 900 } },
    async (ctx, inputs: TokenInput[]) => {
      await work(ctx, inputs);
      return inputs.map(({ token }) => token);
    },
  );
  return { notes, lists, mail };
}
