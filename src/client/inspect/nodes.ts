/** The steps that a workflow declares, and how far a run is with each. */
import type { ExecutionInfo } from "./executions.js";

/** A node as it is declared. In a frozen graph it has an id of its own; elsewhere its name is its id. */
export interface PlannedNode {
  readonly id?: string;
  readonly name: string;
  readonly kind: "step" | "branch" | "job";
  readonly job?: string | null;
  readonly after: readonly string[];
}

export interface NodeInfo {
  readonly id: string;
  readonly name: string;
  readonly kind: "step" | "branch" | "job";
  /** The job that it runs, if it is not a step of its own workflow. */
  readonly job: string | null;
  /** The names of those that it comes after. */
  readonly after: readonly string[];
  /** "pending": nothing is known of it yet. "removed": the run has it, the code does not any more. */
  readonly state: ExecutionInfo["state"] | "pending" | "removed";
  readonly attempt: number;
  readonly outcome: string | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly error: Error | null;
  /** Of a completed node: the proof of what it was built upon. */
  readonly ancestryHash: string | null;
}

export function nodesOf(declared: readonly PlannedNode[], executions: readonly ExecutionInfo[]): NodeInfo[] {
  const latest = new Map(executions.map((execution) => [execution.node, execution]));
  const nodes = declared.map(({ id, name, kind, job = null, after }) => {
    const execution = latest.get(id ?? name);
    return {
      id: id ?? name,
      name,
      kind,
      job,
      after,
      state: execution?.state ?? "pending",
      ...executionFields(execution),
    };
  });
  const declaredIds = new Set(nodes.map(({ id }) => id));
  for (const execution of latest.values()) {
    const { node } = execution;
    // Parts of a step, and what undoes it, are not nodes.
    if (declaredIds.has(node) || /[/#]/.test(node) || node === "on_failure") continue;
    const removed = { id: node, name: node, kind: "step", job: null, after: [], state: "removed" } as const;
    nodes.push({ ...removed, ...executionFields(execution) } as never);
  }
  return nodes as NodeInfo[];
}

function executionFields(execution: ExecutionInfo | undefined) {
  const {
    attempt = 0,
    outcome = null,
    startedAt = null,
    finishedAt = null,
    error = null,
    ancestryHash = null,
  } = execution ?? {};
  return { attempt, outcome, startedAt, finishedAt, error, ancestryHash };
}

/** The steps of a function are those that its runs have come to. */
export function nodesFromExecutions(executions: readonly ExecutionInfo[]): PlannedNode[] {
  const names = new Set(executions.map(({ node }) => node));
  return [...names].map((name) => ({ name, kind: "step", after: [] }));
}
