/** The steps that a workflow declares, and how far a run is with each. */
import type { DeclaredNode } from "../define/definition.js";
import type { ExecutionInfo } from "./executions.js";

export interface NodeInfo {
  readonly name: string;
  readonly kind: "step" | "branch";
  /** The names of those that it comes after. */
  readonly after: readonly string[];
  /** "pending": nothing is known of it yet. "removed": the run has it, the code does not any more. */
  readonly state: ExecutionInfo["state"] | "pending" | "removed";
  readonly attempt: number;
  readonly outcome: string | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
}

export function nodesOf(declared: readonly DeclaredNode[], executions: readonly ExecutionInfo[]): NodeInfo[] {
  const latest = new Map(executions.map((execution) => [execution.step, execution]));
  const nodes = declared.map(({ name, kind, after }): NodeInfo => {
    const {
      state = "pending",
      attempt = 0,
      outcome = null,
      startedAt = null,
      finishedAt = null,
    } = latest.get(name) ?? {};
    return { name, kind, after, state, attempt, outcome, startedAt, finishedAt };
  });
  const known = new Set(declared.map(({ name }) => name));
  for (const { step, attempt, outcome, startedAt, finishedAt } of latest.values()) {
    // Parts of a step, and what undoes it, are not nodes.
    if (known.has(step) || /[/#]/.test(step) || step === "on_failure") continue;
    nodes.push({ name: step, kind: "step", after: [], state: "removed", attempt, outcome, startedAt, finishedAt });
  }
  return nodes;
}

/** The steps of a function are those that its runs have come to. */
export function seenIn(executions: readonly ExecutionInfo[]): DeclaredNode[] {
  const names = new Set(executions.map(({ step }) => step));
  return [...names].map((name) => ({ name, kind: "step", after: [] }));
}
