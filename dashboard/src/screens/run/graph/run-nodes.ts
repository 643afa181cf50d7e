/** The nodes of a run, now or as of an event. */
import { useMemo } from "preact/hooks";
import { type Answer, type ApiError, runPath } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { databaseNow } from "../../../shell/me.js";
import type { RunTabProps } from "../tab-props.js";
import type { GraphNode } from "./structure.js";

type NodeAnswer = Answer<"getRunNodes">["nodes"][number];
type Snapshot = Answer<"getRunState">;

export interface RunNodes {
  /** Null until they are read. */
  readonly nodes: readonly GraphNode[] | null;
  /** The duration of each node in milliseconds; 0 if it has not started. */
  readonly tookMs: readonly number[];
  /** Whether the workflow is a function, which declares no graph. */
  readonly isFunction: boolean;
  readonly error: ApiError | null;
}

export function useRunNodes({ run, asOf }: RunTabProps): RunNodes {
  const answer = useQuery<Answer<"getRunNodes">>(
    runPath(run.id, "nodes"),
    { maxPayload: 4_000 },
    { minIntervalMs: 2_000 },
  );
  const state = useQuery<Snapshot>(
    asOf === null ? null : runPath(run.id, "state"),
    { event: asOf, maxPayload: 0 },
    { keepPrevious: true },
  );
  // Only graphs that were built at run time have nodes that run jobs; no registered workflow declares them.
  const isBuilt = answer.data?.nodes.some(({ kind }) => kind === "job") ?? false;
  const registered = useQuery<Answer<"listWorkflows">>(answer.data === undefined || isBuilt ? null : "v1/workflows");
  const snapshot = asOf === null ? null : state.data;
  const nodes = useMemo(
    () => (answer.data === undefined || snapshot === undefined ? null : nodesAt(answer.data.nodes, snapshot)),
    [answer.data, snapshot],
  );
  const tookMs = useMemo(() => (nodes ?? []).map(tookOf), [nodes]);
  const workflow = registered.data?.workflows.find(({ name }) => name === run.workflow);
  const isKnown = isBuilt || registered.data !== undefined || registered.error !== null;
  return {
    nodes: isKnown ? nodes : null,
    tookMs,
    isFunction: !isBuilt && (workflow?.steps.length ?? 0) === 0,
    error: answer.error ?? state.error,
  };
}

function nodesAt(nodes: readonly NodeAnswer[], snapshot: Snapshot | null): GraphNode[] {
  if (snapshot === null) return nodes.map(nodeNow);
  const steps = new Map(snapshot.steps.map((step) => [step.name, step]));
  const at = snapshot.at === null ? 0 : Date.parse(snapshot.at);
  return nodes.map((node) => {
    const step = steps.get(node.id);
    const wasThen = (time: string | null) => (time !== null && Date.parse(time) <= at ? time : null);
    // Only the times of the latest attempt are known, so those of an attempt before it are left out.
    const isLatest = step?.attempt === node.attempt;
    return {
      ...nodeNow(node),
      state: step?.state ?? "pending",
      attempt: step?.attempt ?? 0,
      startedAt: isLatest ? wasThen(node.startedAt) : null,
      // What was executing then is measured until then, not until now.
      finishedAt: step?.state === "executing" ? snapshot.at : isLatest ? wasThen(node.finishedAt) : null,
      error: isLatest && step?.state === "failed" ? messageOf(node.error) : null,
    };
  });
}

const nodeNow = ({ id, name, after, state, attempt, startedAt, finishedAt, error }: NodeAnswer): GraphNode => ({
  ...{ id, name, after, state, attempt, startedAt, finishedAt },
  error: messageOf(error),
});

function messageOf(error: unknown): string | null {
  if (typeof error !== "object" || error === null) return null;
  const { name, message } = error as { readonly name?: unknown; readonly message?: unknown };
  return typeof message === "string" ? message : typeof name === "string" ? name : null;
}

function tookOf({ state, startedAt, finishedAt }: GraphNode): number {
  if (startedAt === null || (finishedAt === null && state !== "executing")) return 0;
  return Math.max(1, (finishedAt === null ? databaseNow() : Date.parse(finishedAt)) - Date.parse(startedAt));
}
