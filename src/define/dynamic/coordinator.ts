/** What runs of frozen graphs are executed by: one definition for all of them, for the graph is data. */

import { toFailure } from "../../core/encoding/error-record.js";
import { GraphError } from "../../core/errors/errors.js";
import type { FrozenDag, FrozenNode } from "../../core/graph/frozen-dag.js";
import { resolveRetry } from "../../core/naming/retry-policy.js";
import { frozenVersion, graphRoute } from "../../core/naming/route.js";
import type { WorkflowContext } from "../context.js";
import { type NodeFailure, type ScheduledNode, workOff } from "../dag-scheduler.js";
import type { WorkflowDefinition } from "../definition.js";
import { anyHero } from "../hero.js";
import { definitionBrand } from "../runnable.js";
import { type Stepping, stepping } from "../step-engine.js";

interface Node extends ScheduledNode {
  readonly frozen: FrozenNode;
}

export const coordinator: WorkflowDefinition<FrozenDag, void> = Object.freeze({
  [definitionBrand]: true as const,
  name: graphRoute,
  style: "graph" as const,
  version: frozenVersion,
  queue: null,
  priority: 0,
  retry: resolveRetry(),
  timeoutMs: null,
  tags: [],
  inputSchema: null,
  outputSchema: null,
  onFailure: null,
  onError: null,
  hooks: null,
  hero: anyHero,
  aliases: null,
  declared: { kind: "graph" as const, signature: "", nodes: [], queues: [], placed: false },
  retryOfNode: null,
  handler: (ctx: WorkflowContext<FrozenDag>, born: FrozenDag) =>
    coordinate((ctx as unknown as { readonly [stepping]: Stepping })[stepping], born),
});

async function coordinate(engine: Stepping, born: FrozenDag): Promise<void> {
  const dag = engine.dag ?? born;
  const { concurrency = Number.POSITIVE_INFINITY, onNodeFailure = "stop" } = dag.options ?? {};
  const nodes = Object.entries(dag.nodes).map(([key, frozen]): Node => ({ key, after: frozen.depends_on, frozen }));
  const failures = await workOff<Node>({
    nodes,
    concurrency,
    onFailure: onNodeFailure,
    ended: ({ key }) => engine.recordOf(key)?.phase ?? null,
    leavesOut: () => false,
    execute: async ({ key, frozen }) => {
      await engine.dispatch({
        id: key,
        name: frozen.name,
        job: frozen.job as string,
        args: frozen.args,
        frozenAt: dag.frozen_at,
      });
      return engine.recordOf(key)?.phase === "skipped" ? "skipped" : "completed";
    },
  });
  if (failures.length > 0) return engine.pauseWithError(problemOf(failures), failures[0]?.node.key);
}

function problemOf(failures: readonly NodeFailure<Node>[]): Error {
  const [{ node, error }] = failures as [NodeFailure<Node>];
  const names = failures.map((one) => one.node.frozen.name);
  const others =
    names.length === 1
      ? ""
      : ` So did ${names
          .slice(1)
          .map((name) => `"${name}"`)
          .join(", ")}.`;
  return new GraphError(
    `Node "${node.frozen.name}" failed: ${sentence(toFailure(error).message)}${others} Repair the cause and resume(), or reattempt() a node.`,
    { nodes: names },
  );
}

const sentence = (text: string) => (/[.!?…]$/.test(text) ? text : `${text}.`);
