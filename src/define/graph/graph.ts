/** Graph style: a workflow whose shape is data, known before it runs. */
import { checkOptions, checkWholeNumber } from "../../core/naming/check-options.js";
import { checkName } from "../../core/naming/names.js";
import type { BatchOptions, ElementOf } from "../batch.js";
import type { WorkflowDefinition } from "../definition.js";
import { type WorkflowOptions, workflow, workflowOptions } from "../function/function.js";
import { type StepEngine, stepEngineKey } from "../step-engine.js";
import { type GraphJson, signatureOf, toJson, toMermaid } from "./drawing.js";
import type { GraphInput, GraphOutput } from "./graph-types.js";
import type { AnyNode } from "./node.js";
import { createGraphPlan, runGraph } from "./run-graph.js";
import { shapeOf } from "./shape.js";

/** Options of `graph(name, nodes, options)`. */
export interface GraphOptions extends WorkflowOptions {
  /** How many steps of a run may execute at the same time. Default: no limit. */
  readonly concurrency?: number;
  /** The names of steps that you removed from the graph. Open runs that recorded them continue without them. */
  readonly removedSteps?: readonly string[];
}

/** The steps of a graph with `batch` have lists of inputs and outputs; a start has one of each. */
type OfOneStart<Options, List> = Options extends { readonly batch: BatchOptions } ? ElementOf<List> : List;

const graphOnlyOptions = ["concurrency", "removedSteps"] satisfies (keyof GraphOptions)[];
const graphOptions = new Set([...workflowOptions, ...graphOnlyOptions]);

/** A graph, as `graph(…)` returns it. */
export interface GraphDefinition<Input = any, Output = any> extends WorkflowDefinition<Input, Output> {
  /** A hash that changes when names, dependencies or cases change. */
  readonly signature: string;
  /** Returns the shape of the graph as data. */
  toJSON(): GraphJson;
  /** Returns the shape of the graph as a Mermaid flowchart. */
  toMermaid(): string;
}

/**
 * Defines a workflow as a graph of steps; steps that do not depend on each other run at the same time. The output of a run
 * is the output of the last step, or an object of outputs by name if several steps have no successor. Throws a GraphError if
 * two steps have one name, a dependency is missing or the dependencies form a cycle.
 *
 * @example
 * ```ts
 * const validate = step("validate", async (ctx: StepContext<Order>) => ({ total: ctx.input.total }));
 * const charge = step("charge", async (ctx) => pay(ctx.output(validate).total));
 * export const order = graph("order", [validate, charge.after(validate)]);
 * ```
 */
export function graph<const Nodes extends readonly AnyNode[], Options extends GraphOptions = GraphOptions>(
  name: string,
  nodes: Nodes,
  options: Options = {} as Options,
): GraphDefinition<OfOneStart<Options, GraphInput<Nodes>>, OfOneStart<Options, GraphOutput<Nodes>>> {
  checkOptions(`Graph "${name}"`, options, graphOptions);
  const { concurrency = Number.POSITIVE_INFINITY, removedSteps = [], ...rest }: GraphOptions = options;
  if (concurrency !== Number.POSITIVE_INFINITY) checkWholeNumber(`The concurrency of graph "${name}"`, concurrency);
  const removed = new Set(removedSteps.map((step) => checkName("step", step)));
  const shape = shapeOf(name, nodes);
  const definition = workflow(name, rest as WorkflowOptions & { input?: undefined; batch?: undefined }, () => {});
  const plan = createGraphPlan(shape, definition, { concurrency, removed });
  const signature = signatureOf(shape);
  return Object.freeze({
    ...definition,
    style: "graph",
    declared: {
      kind: "graph",
      signature,
      nodes: shape.nodes.map(({ name: node, handle, after }) => ({ name: node, kind: handle.kind, after })),
      queues: [],
      hasStepRouting: false,
    },
    handler: (ctx: object) => runGraph(plan, (ctx as { readonly [stepEngineKey]: StepEngine })[stepEngineKey]),
    signature,
    toJSON: () => toJson(shape),
    toMermaid: () => toMermaid(shape),
  }) as GraphDefinition<any, any>;
}
