/** The definition that executes all runs of graphs that are built at run time. The graph is data: the input of the run. */

import { toFailure } from "../../core/encoding/error-record.js";
import { GraphError } from "../../core/errors/errors.js";
import type { FrozenDag, FrozenNode } from "../../core/graph/frozen-dag.js";
import { resolveRetry } from "../../core/naming/retry-policy.js";
import { frozenDagVersion, graphRoute } from "../../core/naming/route.js";
import type { WorkflowContext } from "../context.js";
import { type NodeFailure, runDag, type ScheduledNode } from "../dag-scheduler.js";
import type { WorkflowDefinition } from "../definition.js";
import { defaultHeroPolicy } from "../hero.js";
import { definitionBrand } from "../runnable.js";
import { type StepEngine, stepEngineKey } from "../step-engine.js";

interface Node extends ScheduledNode {
  readonly frozenNode: FrozenNode;
}

export const coordinator: WorkflowDefinition<FrozenDag, void> = Object.freeze({
  [definitionBrand]: true as const,
  name: graphRoute,
  style: "graph" as const,
  version: frozenDagVersion,
  queue: null,
  priority: 0,
  retry: resolveRetry(),
  timeoutMs: null,
  startByMs: null,
  tags: [],
  inputSchema: null,
  outputSchema: null,
  onFailure: null,
  onError: null,
  hooks: null,
  hero: defaultHeroPolicy,
  aliases: null,
  limits: [],
  fairBy: null,
  batch: null,
  declared: { kind: "graph" as const, signature: "", nodes: [], queues: [], hasStepRouting: false },
  nodeRetryDelayMs: null,
  handler: (ctx: WorkflowContext<FrozenDag>, storedDag: FrozenDag) =>
    coordinate((ctx as unknown as { readonly [stepEngineKey]: StepEngine })[stepEngineKey], storedDag),
});

async function coordinate(engine: StepEngine, storedDag: FrozenDag): Promise<void> {
  const dag = engine.dag ?? storedDag;
  const { concurrency = Number.POSITIVE_INFINITY, onNodeFailure = "stop" } = dag.options ?? {};
  const nodes = Object.entries(dag.nodes).map(
    ([key, frozenNode]): Node => ({ key, after: frozenNode.depends_on, frozenNode }),
  );
  const failures = await runDag<Node>({
    nodes,
    concurrency,
    onFailure: onNodeFailure,
    recordedState: ({ key }) => engine.recordOf(key)?.phase ?? null,
    shouldSkip: () => false,
    execute: async ({ key, frozenNode }) => {
      await engine.dispatch({
        id: key,
        name: frozenNode.name,
        job: frozenNode.job as string,
        args: frozenNode.args,
        frozenAt: dag.frozen_at,
      });
      return engine.recordOf(key)?.phase === "skipped" ? "skipped" : "completed";
    },
  });
  if (failures.length > 0) return engine.pauseWithError(failureError(failures), failures[0]?.node.key);
}

function failureError(failures: readonly NodeFailure<Node>[]): Error {
  const [{ node, error }] = failures as [NodeFailure<Node>];
  const names = failures.map((failure) => failure.node.frozenNode.name);
  const others =
    names.length === 1
      ? ""
      : ` So did ${names
          .slice(1)
          .map((name) => `"${name}"`)
          .join(", ")}.`;
  return new GraphError(
    `Node "${node.frozenNode.name}" failed: ${toSentence(toFailure(error).message)}${others} Repair the cause and resume(), or reattempt() a node.`,
    { nodes: names },
  );
}

const toSentence = (text: string) => (/[.!?…]$/.test(text) ? text : `${text}.`);
