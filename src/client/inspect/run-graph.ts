/** The graph of a run, for inspecting it, reattempting its nodes and importing a repaired graph. */

import { GraphError, InvalidInputError, InvalidStateError } from "../../core/errors/errors.js";
import {
  dagAsJson,
  dagOf,
  edgesOf,
  type FrozenDag,
  type FrozenNode,
  parseDag,
  predecessorsInDag,
  signDag,
} from "../../core/graph/frozen-dag.js";
import type { PredecessorsOf } from "../../core/graph/predecessors.js";
import { descendantsIn } from "../../core/graph/topological-sort.js";
import { frozenDagVersion, jobWorkflow } from "../../core/naming/route.js";
import { fold } from "../../core/run/fold.js";
import type { RunState } from "../../core/run/state.js";
import type { DeclaredNode } from "../../core/run/stored-schema.js";
import type { RunRecord, Store, StoredEvent } from "../../store/contract/store.js";
import { ShapeRegistry } from "../operate/shape-registry.js";
import { registrationOf } from "../start/registration.js";
import type { ExecutionInfo } from "./executions.js";
import { type NodeInfo, nodesFromExecutions, nodesOf, type PlannedNode } from "./nodes.js";

/** The most node names that an error lists, because a built graph may have thousands of nodes. */
const maxNamesShown = 20;

/** Returns the frozen graph of a run; null if the run has none. Folds the log only if the run has a frozen graph. */
export function frozenGraphOf(run: RunRecord, log: readonly StoredEvent[]): FrozenDag | null {
  const isFrozen = run.version === frozenDagVersion || log.some(({ type }) => type === "dag.imported");
  return isFrozen ? dagOf(run, fold(log)) : null;
}

/** The name of the node with this id in the log. Only frozen graphs have separate ids; elsewhere the id is the name. */
export function nodeName(dag: FrozenDag | null, id: string): string {
  return dag !== null && Object.hasOwn(dag.nodes, id) ? (dag.nodes[id] as FrozenNode).name : id;
}

/** Reads the graph of a run: its own frozen graph, or the registered steps of its code. */
export async function readGraph(store: Store, run: RunRecord): Promise<RunGraph> {
  const state = fold((await store.logs([run.id])).get(run.id) ?? []);
  const record = await store.workflow(run.workflow);
  return new RunGraph(run, state, dagOf(run, state), record === null ? null : registrationOf(record).nodes);
}

/** Returns a function that finds the predecessors of a node, by the graph or steps that the run was last executed with. */
export async function readParents(store: Store, run: RunRecord, state: RunState): Promise<PredecessorsOf> {
  const dag = dagOf(run, state);
  if (dag !== null) return predecessorsInDag(dag);
  const [parentsOf] = (await ShapeRegistry.read(store)).possibleParents(run.workflow, state).byRecordedShape;
  return parentsOf ?? (() => null);
}

export class RunGraph {
  readonly #run: RunRecord;
  readonly #state: RunState;
  readonly #dag: FrozenDag | null;
  readonly #declaredNodes: readonly DeclaredNode[] | null;

  constructor(run: RunRecord, state: RunState, dag: FrozenDag | null, declaredNodes: readonly DeclaredNode[] | null) {
    this.#run = run;
    this.#state = state;
    this.#dag = dag;
    this.#declaredNodes = declaredNodes;
  }

  /** All declared nodes with their states; for a function, which declares none, the steps that have run. */
  nodes(executions: readonly ExecutionInfo[]): NodeInfo[] {
    if (this.#dag === null)
      return nodesOf(this.#declaredNodes?.map(toPlannedNode) ?? nodesFromExecutions(executions), executions);
    const { nodes } = this.#dag;
    const frozenNodes = Object.entries(nodes).map(
      ([id, { name, job, depends_on }]): PlannedNode => ({
        id,
        name,
        kind: job === undefined ? "step" : "job",
        job: job ?? null,
        after: depends_on.map((before) => nodes[before]?.name ?? before),
      }),
    );
    return nodesOf(frozenNodes, executions);
  }

  exportJson(): string {
    return dagAsJson(this.#dag ?? this.#freezeDeclared());
  }

  /** Freezes the registered steps as if the run had been created with them. */
  #freezeDeclared(): FrozenDag {
    if (this.#declaredNodes === null)
      throw new InvalidStateError(
        `Run ${this.#run.id} has no graph: it is a function, whose steps are known only as its code runs.`,
      );
    const nodes = Object.fromEntries(
      this.#declaredNodes.map(({ name, job, after }): [string, FrozenNode] => {
        // The arguments of the job are left out, because they may be a function. If the graph is imported again, the class
        // still provides them.
        return [name, { name, ...(job === undefined ? {} : { job }), depends_on: after }];
      }),
    );
    return signDag(nodes, new Date(this.#run.createdAt));
  }

  /** Returns the id of the node that an operator names by its id or by its name. */
  idOf(node: string): string {
    if (this.#dag === null) return node;
    if (Object.hasOwn(this.#dag.nodes, node)) return node;
    const entry = Object.entries(this.#dag.nodes).find(([, { name }]) => name === node);
    if (entry !== undefined) return entry[0];
    throw this.#unknownNodeError(
      node,
      Object.values(this.#dag.nodes).map(({ name }) => name),
    );
  }

  /** Replaces node ids in the message of an error by names, which is how the caller knows the nodes. */
  withNodeNames(error: unknown): unknown {
    if (!(error instanceof InvalidStateError) || this.#dag === null) return error;
    const message = error.message.replace(/"(n_[0-9a-f]+)"/g, (quoted, id: string) => {
      const name = this.#dag?.nodes[id]?.name;
      return name === undefined ? quoted : `"${name}"`;
    });
    return new InvalidStateError(message, { runId: this.#run.id, status: this.#run.status });
  }

  descendantsOf(node: string): string[] {
    if (this.#dag !== null) return descendantsIn(edgesOf(this.#dag.nodes), node);
    const declaredNodes = this.#declaredNodes;
    if (declaredNodes === null)
      throw new InvalidStateError(
        `Run ${this.#run.id} has no nodes that can be tried again: it is a function, whose steps are known only as its code runs. ` +
          "If it is paused, resume it; if it has failed, retry it.",
        { runId: this.#run.id, status: this.#run.status },
      );
    const names = declaredNodes.map(({ name }) => name);
    if (!names.includes(node)) throw this.#unknownNodeError(node, names);
    return descendantsIn(
      declaredNodes.map(({ name, after }) => [name, after]),
      node,
    );
  }

  #unknownNodeError(node: string, names: readonly string[]): InvalidInputError {
    const shownNames = names.slice(0, maxNamesShown).map((name) => `"${name}"`);
    const more = names.length > maxNamesShown ? ` and ${names.length - maxNamesShown} more` : "";
    return new InvalidInputError(`Run ${this.#run.id} has no node "${node}"; it has ${shownNames.join(", ")}${more}.`);
  }

  /** Checks a graph that is to replace the graph of the run: completed and started nodes must stay as they are. */
  async checkImport(store: Store, json: unknown): Promise<FrozenDag> {
    const importedDag = parseDag(this.#run.workflow, json);
    const currentDag = this.#dag ?? this.#freezeDeclared();
    const declaredJobByName = new Map(this.#declaredNodes?.map(({ name, job }) => [name, job]));
    for (const [id, node] of Object.entries(currentDag.nodes)) {
      const op = this.#state.ops.get(id);
      if (op?.kind !== "step" || (op.phase !== "completed" && op.phase !== "started")) continue;
      const importedNode = importedDag.nodes[id];
      const nodeText = `Node "${node.name}" (${id}) has ${op.phase === "completed" ? "completed" : "started"}`;
      if (importedNode === undefined)
        throw new GraphError(`${nodeText}; it must stay in the graph.`, { nodes: [node.name] });
      if (String([...importedNode.depends_on].sort()) !== String([...node.depends_on].sort()))
        throw new GraphError(`${nodeText}; its dependencies must stay as they are.`, { nodes: [node.name] });
    }
    const jobs = new Set<string>();
    for (const [id, { name, job }] of Object.entries(importedDag.nodes)) {
      const op = this.#state.ops.get(id);
      if (op?.kind === "step" && op.phase === "completed") continue;
      if (job !== undefined) {
        if (declaredJobByName.get(name) !== job) jobs.add(job);
      } else if (!declaredJobByName.has(name))
        throw new GraphError(
          `Node "${name}" (${id}) names no job, and its workflow has no step of that name; add a job, or rename the node.`,
          {
            nodes: [name],
          },
        );
    }
    for (const job of jobs) {
      if ((await store.workflow(jobWorkflow(job))) === null)
        throw new GraphError(
          `No worker has ever registered the job "${job}"; start a worker that has it, then import the graph.`,
          { nodes: nodeNamesOfJob(importedDag, job) },
        );
    }
    return importedDag;
  }
}

function toPlannedNode({ job, ...node }: DeclaredNode): PlannedNode {
  return job === undefined ? node : { ...node, kind: "job", job };
}

const nodeNamesOfJob = (dag: FrozenDag, job: string) =>
  Object.values(dag.nodes).flatMap((node) => (node.job === job ? [node.name] : []));
