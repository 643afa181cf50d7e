/** The shape of a graph: its nodes in topological order, checked when the graph is defined. */
import { GraphError } from "../../core/errors/errors.js";
import { topologicalSort } from "../../core/graph/topological-sort.js";
import { type AnyNode, type BranchHandle, isNode, type StepHandle } from "./node.js";

export interface ShapeNode {
  readonly name: string;
  readonly handle: StepHandle<string, any, any, any> | BranchHandle<string, any, any>;
  /** The names of its predecessors: the nodes given to `after`, and the branch whose case it belongs to. */
  readonly after: readonly string[];
  /** The branch that decides whether the node runs, and the case that the node belongs to; null if it is in no case. */
  readonly choice: { readonly branch: string; readonly label: string } | null;
}

export interface Shape {
  readonly workflow: string;
  /** The nodes in topological order. */
  readonly nodes: readonly ShapeNode[];
  readonly byName: ReadonlyMap<string, ShapeNode>;
  /** The steps without successors; their outputs are the output of the run. */
  readonly lastSteps: readonly ShapeNode[];
}

export function shapeOf(workflow: string, handles: readonly AnyNode[]): Shape {
  const nodesByName = new Map<string, ShapeNode>();
  collect(workflow, handles, null, nodesByName);
  if (nodesByName.size === 0)
    throw new GraphError(`Graph "${workflow}" has no steps; give it at least one.`, { workflow });
  for (const node of nodesByName.values()) checkDependencies(workflow, node, nodesByName);
  const nodes = sortNodes(workflow, nodesByName);
  const namesWithSuccessors = new Set(nodes.flatMap((node) => node.after));
  return {
    workflow,
    nodes,
    byName: nodesByName,
    lastSteps: nodes.filter(({ name, handle }) => handle.kind === "step" && !namesWithSuccessors.has(name)),
  };
}

function collect(
  workflow: string,
  handles: readonly AnyNode[],
  choice: ShapeNode["choice"],
  nodesByName: Map<string, ShapeNode>,
): void {
  if (!Array.isArray(handles)) throw new GraphError(`Graph "${workflow}" takes a list of steps.`, { workflow });
  for (const handle of handles) {
    if (!isNode(handle))
      throw new GraphError(`Graph "${workflow}" takes steps made by step(…) and branch(…) only.`, { workflow });
    const { name } = handle;
    if (nodesByName.has(name))
      throw new GraphError(`Graph "${workflow}" has two steps called "${name}"; rename one of them.`, {
        workflow,
        nodes: [name],
      });
    const after = new Set(handle.dependencies.map((dependency) => dependency.name));
    if (choice !== null) after.add(choice.branch);
    nodesByName.set(name, { name, handle, after: [...after], choice });
    if (handle.kind !== "branch") continue;
    for (const [label, nodes] of Object.entries(handle.cases))
      collect(workflow, nodes as readonly AnyNode[], { branch: name, label }, nodesByName);
  }
}

function checkDependencies(workflow: string, node: ShapeNode, nodesByName: ReadonlyMap<string, ShapeNode>): void {
  for (const dependency of node.handle.dependencies) {
    const dependencyNode = nodesByName.get(dependency.name);
    if (dependencyNode === undefined)
      throw new GraphError(
        `Step "${node.name}" of graph "${workflow}" depends on "${dependency.name}", which is not in the graph; add it to the list.`,
        { workflow, nodes: [node.name, dependency.name] },
      );
    if (!isSameHandle(dependencyNode.handle, dependency))
      throw new GraphError(
        `Step "${node.name}" of graph "${workflow}" depends on another "${dependency.name}" than the one in the graph; use the same step in both places.`,
        { workflow, nodes: [node.name, dependency.name] },
      );
  }
}

/** Whether both handles are of the same step. `.after` makes a new handle, so handles are compared by their functions. */
function isSameHandle(first: AnyNode, second: AnyNode): boolean {
  if (first.kind === "step") return second.kind === "step" && first.fn === second.fn;
  return second.kind === "branch" && first.choose === second.choose;
}

function sortNodes(workflow: string, nodesByName: ReadonlyMap<string, ShapeNode>): ShapeNode[] {
  const { order, cycle } = topologicalSort([...nodesByName.values()].map(({ name, after }) => [name, after]));
  if (cycle !== null)
    throw new GraphError(
      `The dependencies of graph "${workflow}" form a cycle: ${cycle.join(" → ")}. Remove one of them.`,
      { workflow, nodes: cycle },
    );
  return order.map((name) => nodesByName.get(name) as ShapeNode);
}

/** Whether the node `name` precedes the node `descendant`, directly or through other nodes. */
export function isAncestor(shape: Shape, name: string, descendant: string): boolean {
  const visitedNames = new Set<string>();
  const toVisit = [...(shape.byName.get(descendant)?.after ?? [])];
  for (let next = toVisit.pop(); next !== undefined; next = toVisit.pop()) {
    if (next === name) return true;
    if (visitedNames.has(next)) continue;
    visitedNames.add(next);
    toVisit.push(...(shape.byName.get(next)?.after ?? []));
  }
  return false;
}
