/** Function style: handlers that interpret a program. */
import {
  type LimitDefinition,
  PauseError,
  PermanentError,
  type StepTools,
  type WorkflowContext,
  type WorkflowDefinition,
  workflow,
} from "../../../src/index.js";
import { keyedLimits, type LimitName } from "../checks/limit-plan.js";
import type { UserHandle } from "../kernel/user-table.js";
import type { Bench, BodyPlan } from "./bench.js";
import { limitedWorkflows, type StepLimitName } from "./limited-workflows.js";
import type { Op, Program } from "./program.js";

export interface ProgramInput {
  readonly program: Program;
  /** The key of the limits that have one. */
  readonly tenant: string;
  /** Of starts that share an idempotency key: the key. */
  readonly group?: string;
  readonly token?: string;
}

export type ProgramWorkflow = WorkflowDefinition<ProgramInput, unknown>;

const retry = { attempts: 5, initial: 60, factor: 2, max: 500 } as const;

export function functionWorkflows(bench: Bench, limits: Record<LimitName, LimitDefinition>) {
  const interpreter = new Interpreter(bench, limits, () => ({ program, limited: limited.limited }));
  const handler = (ctx: WorkflowContext<ProgramInput>, input: ProgramInput) =>
    interpreter.execute(ctx, input.program, input.tenant);
  const program: ProgramWorkflow = workflow("program", { retry }, handler);
  const limited = limitedWorkflows(limits, handler, retry);
  return { program, ...limited };
}

interface StepPlan {
  readonly timeout?: number;
  readonly compensates?: boolean;
  readonly onCrash?: "pause";
  readonly isAdded?: boolean;
  readonly limit?: StepLimitName;
  readonly units?: number;
}

type Children = { readonly name: string; result(): Promise<unknown> }[];

class Interpreter {
  readonly #bench: Bench;
  readonly #limits: Record<LimitName, LimitDefinition>;
  readonly #definitions: () => { readonly program: ProgramWorkflow; readonly limited: ProgramWorkflow };

  constructor(
    bench: Bench,
    limits: Record<LimitName, LimitDefinition>,
    definitions: () => { readonly program: ProgramWorkflow; readonly limited: ProgramWorkflow },
  ) {
    this.#bench = bench;
    this.#limits = limits;
    this.#definitions = definitions;
  }

  /** Returns what the code has seen: the checker compares it with what the log says. */
  async execute(ctx: WorkflowContext<any>, program: Program, tenant: string): Promise<unknown[]> {
    const seen: unknown[] = [];
    const children: Children = [];
    for (const op of program) {
      const value = await this.#operate(ctx, op, children, tenant);
      if (value !== undefined) seen.push(value);
    }
    for (const child of children) seen.push([child.name, await outcomeOf(() => child.result())]);
    return seen;
  }

  async #operate(ctx: WorkflowContext<any>, op: Op, children: Children, tenant: string) {
    const { program, limited } = this.#definitions();
    const step = (name: string, plan: BodyPlan, options: StepPlan = {}) => this.#step(ctx, name, plan, options, tenant);
    switch (op.op) {
      case "step": {
        const call = () => step(op.name, op, op);
        return [op.name, op.isSwallowed === true ? await outcomeOf(call) : await call()];
      }
      case "sleep": {
        const call = () =>
          op.isUntil === true ? ctx.sleepUntil(op.name, ctx.now().getTime() + op.ms) : ctx.sleep(op.name, op.ms);
        if (op.isSwallowed === true) await outcomeOf(call);
        else await call();
        return;
      }
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
        return [op.name, await outcomeOf(() => ctx.run(child, { program: op.program, tenant }, { name: op.name }))];
      }
      case "spawn": {
        const child = await ctx.start(program, { program: op.program, tenant }, { name: op.name });
        children.push({ name: op.name, result: () => child.result() });
        return;
      }
      case "map": {
        const items = op.items.map((item) => ({ program: item, tenant }));
        const { concurrency } = op;
        const result = await ctx.map(program, items, { name: op.name, concurrency, tolerate: items.length });
        return [op.name, items.map((_, index) => result[index] ?? "lost")];
      }
      case "transaction":
        return [op.name, await this.#transaction(ctx, op)];
      case "parallel":
        return ["parallel", ...(await Promise.all(op.branches.map((branch) => this.execute(ctx, branch, tenant))))];
      case "branch": {
        const cases = { left: () => this.execute(ctx, op.program, tenant), right: async () => [] };
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
        void step(op.name, op).catch(() => {});
        return;
      case "stray":
        // User code that keeps `ctx`, and calls it when its handler may have returned, or its turn may have ended.
        void this.#bench
          .sleep(op.ms)
          .then(() => step(op.name, { ms: 5 }))
          .catch(() => {});
        return;
      case "added":
        if (this.#bench.release < 2) return;
        return [op.name, await step(op.name, op, { isAdded: true })];
      case "patch":
        if (this.#bench.release < 2 || !ctx.patched(op.name)) return;
        return [op.name, await step(`${op.name}_new`, op)];
      case "changed": {
        // The new release has other steps here, and says nothing about it: runs that have recorded the old ones are paused.
        const [first, second] = [`${op.name}_1`, `${op.name}_2`];
        const steps = this.#bench.release < 2 ? [first, second] : changedSteps(op.change, first, second);
        const seen: unknown[] = [];
        for (const name of steps) seen.push([name, await step(name, op)]);
        return seen;
      }
      case "fail":
        throw new PermanentError("a planned failure of the run");
    }
  }

  #step(
    ctx: WorkflowContext<any>,
    name: string,
    plan: BodyPlan,
    { timeout, compensates, onCrash, isAdded, units, ...options }: StepPlan,
    tenant: string,
  ): Promise<string> {
    const limit = options.limit ?? (needsMachine(name) && timeout === undefined ? "machines" : undefined);
    const lane = limit === undefined ? null : `${limit}\t${keyedLimits.has(limit) ? tenant : ""}`;
    // Long enough that runs are parked while their steps wait for a machine.
    const isLong = limit === "machines" && timeout === undefined;
    const limitedPlan = isLong ? { ...plan, ms: Math.max(plan.ms, 2_000) } : plan;
    const body = (tools: StepTools) => this.#bench.body(ctx.runId, name, limitedPlan, tools.attempt, lane);
    const undo = `${name}#compensate`;
    return ctx.step(name, body, {
      ...(timeout === undefined ? {} : { timeout }),
      ...(onCrash === undefined ? {} : { onCrash }),
      ...(isAdded === true ? { added: true } : {}),
      ...(limit === undefined ? {} : { limit: this.#limits[limit] }),
      ...(units === undefined ? {} : { units }),
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

function changedSteps(change: "renamed" | "removed" | "reordered", first: string, second: string): readonly string[] {
  if (change === "reordered") return [second, first];
  return change === "removed" ? [second] : [`${first}_renamed`, second];
}

/** Some steps of every world, so that they wait for each other. */
const needsMachine = (step: string) => /[23567]$/.test(step);

const waitOptions = (timeout: number | undefined) => (timeout === undefined ? {} : { timeout });

/** Errors of children and swallowed steps become values; what the engine throws to interrupt the code is swallowed as well, as user code does. */
async function outcomeOf(call: () => Promise<unknown>): Promise<unknown> {
  try {
    return await call();
  } catch {
    return "lost";
  }
}
