/** Everything that a run has recorded about one of its steps, timers, waits or children. */
import { RunNotFoundError } from "../../core/errors/errors.js";
import { nodeRunId } from "../../core/run/cancel-children.js";
import { dataOf } from "../../core/run/event.js";
import { idempotencyRunIdOf } from "../../core/run/lineage.js";
import type { RunState } from "../../core/run/state.js";
import { scopeOf } from "../../core/run/step-key.js";
import type { RunRecord, Store, StoredEvent } from "../../store/contract/store.js";
import { checkEventsReadable, foldLog, rethrowAsRunDamage } from "./damaged-data.js";
import { type ExecutionInfo, executionsOf } from "./executions.js";
import { type HistoryEvent, toHistoryEvent } from "./history.js";
import { readNextStep } from "./next-step.js";
import { frozenGraphOf, nodeName } from "./run-graph.js";
import { readLog } from "./run-log.js";

export interface StepDetail {
  /** The key in the log. */
  readonly node: string;
  /** The name; it differs from the key only in built graphs. */
  readonly name: string;
  /** How the declared steps of the run are ordered; null for a function, and before the run has started. */
  readonly structure: "chain" | "graph" | null;
  /** The key that the code of the step may pass to other systems; null if it is not a step. */
  readonly idempotencyKey: string | null;
  /** The latest attempts, in order. */
  readonly executions: readonly ExecutionInfo[];
  /** How many attempts there are. */
  readonly executionCount: number;
  /** The latest events about it, in order. */
  readonly events: readonly HistoryEvent[];
  /** How many events there are about it. */
  readonly eventCount: number;
  /** The latest event that completed it; null if none did. */
  readonly completed: HistoryEvent | null;
  /** The latest runs that it has started as children. The children of a map are not among them. */
  readonly children: readonly Pick<RunRecord, "id" | "workflow" | "status">[];
}

/** A step may have thousands of attempts, and a person reads only the latest ones. */
const maxExecutions = 100;
const maxEvents = 50;
const maxChildren = 20;

/** @throws RunNotFoundError */
export async function readStepDetail(store: Store, runId: string, node: string): Promise<StepDetail> {
  const run = await store.run(runId);
  if (run === null) throw new RunNotFoundError(runId);
  const log = await readLog(store, run);
  checkEventsReadable(runId, log);
  const detail = await rethrowAsRunDamage(runId, async () => {
    const state = foldLog(runId, log);
    const name = nodeName(frozenGraphOf(run, log), node);
    const next = await readNextStep(store, run, log);
    const executions = executionsOf(runId, log, next)
      .filter((execution) => execution.node === node)
      .map((execution) => ({ ...execution, step: name }));
    return { state, name, executions };
  });
  const { state, name, executions } = detail;
  const events = log.filter((event) => event.node === node);
  const completed = events.findLast(({ type }) => type === "step.completed");
  const childIds = childIdsOf(runId, state, log, node).slice(-maxChildren);
  return {
    node,
    name,
    structure: state.stepStructure,
    idempotencyKey: executions.length === 0 ? null : `${idempotencyRunIdOf(state, runId, node)}:${node}`,
    executions: executions.slice(-maxExecutions),
    executionCount: executions.length,
    events: events.slice(-maxEvents).map((event) => toHistoryEvent(runId, event)),
    eventCount: events.length,
    completed: completed === undefined ? null : toHistoryEvent(runId, completed),
    children: childIds.length === 0 ? [] : await store.runsById(childIds),
  };
}

/** The children that the call or the body of the step has started, and the runs of its job. */
function childIdsOf(runId: string, state: RunState, log: readonly StoredEvent[], node: string): string[] {
  const ids = new Set<string>();
  for (const event of log) {
    if (event.type === "child.started" && (event.node === node || event.node?.startsWith(scopeOf(node)) === true))
      ids.add(dataOf(event, "child.started").runId);
    if (event.type === "node.dispatched" && event.node === node)
      ids.add(nodeRunId(runId, state, node, event.attempt ?? 1));
  }
  return [...ids];
}
