/** Function style: handlers that interpret a program. */
import {
  limit,
  PauseError,
  PermanentError,
  type StepTools,
  type WorkflowContext,
  type WorkflowDefinition,
  workflow,
} from "../../../src/index.js";
import type { UserHandle } from "../kernel/user-table.js";
import type { Bench, BodyPlan } from "./bench.js";
import type { Op, Program } from "./program.js";

export interface ProgramInput {
  readonly program: Program;
}

type ProgramWorkflow = WorkflowDefinition<ProgramInput, unknown>;

const retry = { attempts: 5, initial: 60, factor: 2, max: 500 } as const;

/** At most this many runs of the limited workflow are executed at a time. */
export const limitedConcurrency = 2;

export function functionWorkflows(bench: Bench) {
  const interpreter = new Interpreter(bench, () => ({ program, limited }));
  const handler = (ctx: WorkflowContext<ProgramInput>, input: ProgramInput) => interpreter.execute(ctx, input.program);
  const program: ProgramWorkflow = workflow("program", { retry }, handler);
  const slots = limit("slots", { concurrency: limitedConcurrency });
  const limited: ProgramWorkflow = workflow("limited", { retry, limits: [slots] }, handler);
  return { program, limited };
}

class Interpreter {
  readonly #bench: Bench;
  readonly #definitions: () => { readonly program: ProgramWorkflow; readonly limited: ProgramWorkflow };

  constructor(
    bench: Bench,
    definitions: () => { readonly program: ProgramWorkflow; readonly limited: ProgramWorkflow },
  ) {
    this.#bench = bench;
    this.#definitions = definitions;
  }

  /** Returns what the code has seen: the checker compares it with what the log says. */
  async execute(ctx: WorkflowContext<any>, program: Program): Promise<unknown[]> {
    const seen: unknown[] = [];
    const children: { readonly name: string; result(): Promise<unknown> }[] = [];
    for (const op of program) {
      const value = await this.#operate(ctx, op, children);
      if (value !== undefined) seen.push(value);
    }
    for (const child of children) seen.push([child.name, await outcomeOf(() => child.result())]);
    return seen;
  }

  async #operate(ctx: WorkflowContext<any>, op: Op, children: { name: string; result(): Promise<unknown> }[]) {
    const { program, limited } = this.#definitions();
    switch (op.op) {
      case "step": {
        const call = () => this.#step(ctx, op.name, op, op);
        return [op.name, op.isSwallowed === true ? await outcomeOf(call) : await call()];
      }
      case "sleep":
        if (op.isUntil === true) await ctx.sleepUntil(op.name, ctx.now().getTime() + op.ms);
        else await ctx.sleep(op.name, op.ms);
        return;
      case "signal":
        return ["signal", await ctx.waitForSignal(op.name, waitOptions(op.timeout))];
      case "any":
        return ["any", (await ctx.waitForAny(op.names, waitOptions(op.timeout)))?.payload ?? null];
      case "all":
        return ["all", Object.values((await ctx.waitForAll(op.names, waitOptions(op.timeout))) ?? {})];
      case "race": {
        const arms = { signal: ctx.waitForSignal(op.signal), time: ctx.sleep(op.name, op.ms) };
        const { name, value } = await ctx.race(arms);
        return ["race", name, value ?? null];
      }
      case "child": {
        const child = op.isLimited === true ? limited : program;
        return [op.name, await outcomeOf(() => ctx.run(child, { program: op.program }, { name: op.name }))];
      }
      case "spawn": {
        const child = await ctx.start(program, { program: op.program }, { name: op.name });
        children.push({ name: op.name, result: () => child.result() });
        return;
      }
      case "map": {
        const items = op.items.map((item) => ({ program: item }));
        const { concurrency } = op;
        const result = await ctx.map(program, items, { name: op.name, concurrency, tolerate: items.length });
        return [op.name, items.map((_, index) => result[index] ?? "lost")];
      }
      case "transaction":
        return [op.name, await this.#transaction(ctx, op)];
      case "parallel":
        return ["parallel", ...(await Promise.all(op.branches.map((branch) => this.execute(ctx, branch))))];
      case "branch": {
        const cases = { left: () => this.execute(ctx, op.program), right: async () => [] };
        return [
          op.name,
          await ctx.branch(op.name, () => (this.#bench.options.random.chance(0.6) ? "left" : "right"), cases),
        ];
      }
      case "chance": {
        const drawn = [ctx.random(), ctx.uuid()];
        const recorded = await ctx.step(op.name, () => drawn);
        // The same on every replay, so what was recorded is what the code draws now.
        if (recorded[0] !== drawn[0] || recorded[1] !== drawn[1])
          throw new PermanentError("Replay drew other numbers.");
        return;
      }
      case "hold":
        await ctx.step(op.name, async (tools) => {
          await this.#bench.body(ctx.runId, op.name, { ms: 5 }, tools.attempt);
          if (tools.attempt === 1)
            throw new PauseError("a planned pause", { resumeOn: "go", recheckAfter: op.recheck });
        });
        return;
      case "pause":
        return ctx.pause("a planned pause");
      case "detached":
        // User code that forgets to await: its rejection, if any, is caught, its result is not used.
        void this.#step(ctx, op.name, op).catch(() => {});
        return;
      case "added":
        if (this.#bench.release < 2) return;
        return [op.name, await this.#step(ctx, op.name, op, { isAdded: true })];
      case "patch":
        if (this.#bench.release < 2 || !ctx.patched(op.name)) return;
        return [op.name, await this.#step(ctx, `${op.name}_new`, op)];
      case "fail":
        throw new PermanentError("a planned failure of the run");
    }
  }

  #step(
    ctx: WorkflowContext<any>,
    name: string,
    plan: BodyPlan,
    options: {
      readonly timeout?: number;
      readonly compensates?: boolean;
      readonly onCrash?: "pause";
      readonly isAdded?: boolean;
    } = {},
  ): Promise<string> {
    const body = (tools: StepTools) => this.#bench.body(ctx.runId, name, plan, tools.attempt);
    const { timeout, compensates, onCrash, isAdded } = options;
    const undo = `${name}#compensate`;
    return ctx.step(name, body, {
      ...(timeout === undefined ? {} : { timeout }),
      ...(onCrash === undefined ? {} : { onCrash }),
      ...(isAdded === true ? { added: true } : {}),
      ...(compensates === true
        ? { compensate: (tools: StepTools) => this.#bench.body(ctx.runId, undo, { ms: 10 }, tools.attempt) }
        : {}),
    });
  }

  #transaction(ctx: WorkflowContext<any>, op: Op & { readonly op: "transaction" }): Promise<string> {
    return ctx.transaction(op.name, async (tx: UserHandle, { attempt }: StepTools) => {
      const token = await this.#bench.body(ctx.runId, op.name, op, attempt);
      const row = { run: ctx.runId, step: op.name, token };
      await tx.insert(row);
      if (op.isLate === true)
        void this.#bench
          .sleep(300)
          .then(() => tx.insert({ ...row, token: "late" }))
          .catch(() => {});
      if (op.isDeadlocked === true && attempt === 1) {
        tx.doom();
        await tx.insert(row).catch(() => {});
      }
      return token;
    });
  }
}

const waitOptions = (timeout: number | undefined) => (timeout === undefined ? {} : { timeout });

/** Errors of children and swallowed steps become values; what the engine throws to interrupt the code is swallowed as well, as user code does. */
async function outcomeOf(call: () => Promise<unknown>): Promise<unknown> {
  try {
    return await call();
  } catch {
    return "lost";
  }
}
