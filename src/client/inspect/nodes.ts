/** Combines the steps that a workflow declares with the executions of a run. */
import type { ExecutionInfo } from "./executions.js";

/** A declared node. `id` is set only in a frozen graph; elsewhere the name of a node is its id. */
export interface PlannedNode {
  readonly id?: string;
  readonly name: string;
  readonly kind: "step" | "branch" | "job";
  readonly job?: string | null;
  readonly after: readonly string[];
}

/** A declared step and its state in a run, as `run.nodes()` returns it. */
export interface NodeInfo {
  /** The id of the node: its name, except in built graphs. */
  readonly id: string;
  /** The name of the node. */
  readonly name: string;
  /** Whether it is a step, a branch of a graph, or a node that runs a job. */
  readonly kind: "step" | "branch" | "job";
  /** The job that it runs; null if it has code of its own. */
  readonly job: string | null;
  /** The names of its predecessors. */
  readonly after: readonly string[];
  /**
   * The state of its latest execution. "pending": the node has no execution yet. "removed": the run has executed the node,
   * but the code no longer declares it.
   */
  readonly state: ExecutionInfo["state"] | "pending" | "removed";
  /** The number of its latest attempt; 0 if there is no attempt yet. */
  readonly attempt: number;
  /** How its latest execution ended; null if it has not ended. */
  readonly outcome: string | null;
  /** When its latest execution started; null if it has not started. */
  readonly startedAt: Date | null;
  /** When its latest execution ended; null if it has not ended. */
  readonly finishedAt: Date | null;
  /** The exception of its latest execution; null if there was none. */
  readonly error: Error | null;
  /** For a completed node: a hash over its output and the hashes of its predecessors. Otherwise null. */
  readonly ancestryHash: string | null;
}

export function nodesOf(declaredNodes: readonly PlannedNode[], executions: readonly ExecutionInfo[]): NodeInfo[] {
  const latestByNode = new Map(executions.map((execution) => [execution.node, execution]));
  const nodes = declaredNodes.map(({ id, name, kind, job = null, after }) => {
    const execution = latestByNode.get(id ?? name);
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
  for (const execution of latestByNode.values()) {
    const { node } = execution;
    // Calls inside a step (`step/call`), compensations (`step#…`) and `onFailure` have executions but are not nodes.
    if (declaredIds.has(node) || /[/#]/.test(node) || node === "on_failure") continue;
    const removedNode = { id: node, name: node, kind: "step", job: null, after: [], state: "removed" } as const;
    nodes.push({ ...removedNode, ...executionFields(execution) } as never);
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

/** A function declares no steps, so its nodes are the steps that have run. */
export function nodesFromExecutions(executions: readonly ExecutionInfo[]): PlannedNode[] {
  const names = new Set(executions.map(({ node }) => node));
  return [...names].map((name) => ({ name, kind: "step", after: [] }));
}
