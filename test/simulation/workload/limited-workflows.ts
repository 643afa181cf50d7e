/** Limits, and workflows and steps that have them. */
import { type LimitDefinition, limit, type WorkflowContext, workflow } from "../../../src/index.js";
import { type LimitName, limitsOfWorkflows } from "../checks/limit-plan.js";
import type { ProgramInput, ProgramWorkflow } from "./function-workflows.js";

export type StepLimitName = "machines" | "meter";

/** A new release may have other values. That which was registered last is in force. */
export function limitsOf(release: number): Record<LimitName, LimitDefinition> {
  const key = "input.tenant";
  return {
    slots: limit("slots", { concurrency: release === 1 ? 2 : 3 }),
    tenants: limit("tenants", { key, concurrency: 1 }),
    pace: limit("pace", { concurrency: 3, rate: { limit: 4, per: 1_000, burst: 1 } }),
    customers: limit("customers", { key, concurrency: 1, while: "open" }),
    machines: limit("machines", { concurrency: release === 1 ? 1 : 2 }),
    meter: limit("meter", { key, concurrency: 4, rate: { limit: 10, per: 1_000, burst: 4 } }),
  };
}

export function limitedWorkflows(
  limits: Record<LimitName, LimitDefinition>,
  handler: (ctx: WorkflowContext<ProgramInput>, input: ProgramInput) => Promise<unknown>,
  retry: object,
) {
  const make = (name: keyof typeof limitsOfWorkflows, options: object = {}): ProgramWorkflow =>
    workflow(name, { retry, limits: limitsOfWorkflows[name].map((used) => limits[used]), ...options }, handler);
  return {
    limited: make("limited"),
    keyed: make("keyed", { fairBy: "input.tenant" }),
    paced: make("paced"),
    held: make("held"),
  };
}
