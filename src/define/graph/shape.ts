/** The shape of a graph: its nodes in an order in which they can run, checked before anything does. */
import { GraphError } from "../../core/errors/errors.js";
import { orderOf } from "../../core/graph/topological-sort.js";
import { type AnyNode, type BranchHandle, isNode, type StepHandle } from "./node.js";

export interface ShapeNode {
  readonly name: string;
  readonly handle: StepHandle<string, any, any, any> | BranchHandle<string, any, any>;
  /** By name: those given with `after`, and the branch it is a case of. */
  readonly after: readonly string[];
  /** The branch that decides whether it runs, and the case it belongs to. */
  readonly choice: { readonly branch: string; readonly label: string } | null;
}

export interface Shape {
  readonly workflow: string;
  /** Each comes after all that it depends on. */
  readonly nodes: readonly ShapeNode[];
  readonly byName: ReadonlyMap<string, ShapeNode>;
  /** Those that nothing comes after: their outputs are the run's. */
  readonly last: readonly ShapeNode[];
}

export function shapeOf(workflow: string, given: readonly AnyNode[]): Shape {
  const found = new Map<string, ShapeNode>();
  collect(workflow, given, null, found);
  if (found.size === 0) throw new GraphError(`Graph "${workflow}" has no steps; give it at least one.`, { workflow });
  for (const node of found.values()) checkDependencies(workflow, node, found);
  const nodes = inOrder(workflow, found);
  const followed = new Set(nodes.flatMap((node) => node.after));
  return {
    workflow,
    nodes,
    byName: found,
    last: nodes.filter(({ name, handle }) => handle.kind === "step" && !followed.has(name)),
  };
}

function collect(
  workflow: string,
  given: readonly AnyNode[],
  choice: ShapeNode["choice"],
  found: Map<string, ShapeNode>,
): void {
  if (!Array.isArray(given)) throw new GraphError(`Graph "${workflow}" takes a list of steps.`, { workflow });
  for (const handle of given) {
    if (!isNode(handle))
      throw new GraphError(`Graph "${workflow}" takes steps made by step(…) and branch(…) only.`, { workflow });
    const { name } = handle;
    if (found.has(name))
      throw new GraphError(`Graph "${workflow}" has two steps called "${name}"; give one another name.`, {
        workflow,
        nodes: [name],
      });
    const after = new Set(handle.dependencies.map((dependency) => dependency.name));
    if (choice !== null) after.add(choice.branch);
    found.set(name, { name, handle, after: [...after], choice });
    if (handle.kind !== "branch") continue;
    for (const [label, nodes] of Object.entries(handle.cases))
      collect(workflow, nodes as readonly AnyNode[], { branch: name, label }, found);
  }
}

function checkDependencies(workflow: string, node: ShapeNode, found: ReadonlyMap<string, ShapeNode>): void {
  for (const dependency of node.handle.dependencies) {
    const known = found.get(dependency.name);
    if (known === undefined)
      throw new GraphError(
        `Step "${node.name}" of graph "${workflow}" comes after "${dependency.name}", which is not in the graph; add it to the list.`,
        { workflow, nodes: [node.name, dependency.name] },
      );
    if (!isSame(known.handle, dependency))
      throw new GraphError(
        `Step "${node.name}" of graph "${workflow}" comes after another "${dependency.name}" than the one in the graph.`,
        { workflow, nodes: [node.name, dependency.name] },
      );
  }
}

/** `.after` makes a new handle of the same step: what it does tells who it is. */
function isSame(one: AnyNode, other: AnyNode): boolean {
  if (one.kind === "step") return other.kind === "step" && one.fn === other.fn;
  return other.kind === "branch" && one.choose === other.choose;
}

function inOrder(workflow: string, found: ReadonlyMap<string, ShapeNode>): ShapeNode[] {
  const { order, circle } = orderOf([...found.values()].map(({ name, after }) => [name, after]));
  if (circle !== null)
    throw new GraphError(
      `Graph "${workflow}" goes in a circle: ${circle.join(" → ")}. Leave out one of these dependencies.`,
      { workflow, nodes: circle },
    );
  return order.map((name) => found.get(name) as ShapeNode);
}

/** Whether `name` lies somewhere before `of`. */
export function isAncestor(shape: Shape, name: string, of: string): boolean {
  const seen = new Set<string>();
  const open = [...(shape.byName.get(of)?.after ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next === name) return true;
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...(shape.byName.get(next)?.after ?? []));
  }
  return false;
}
