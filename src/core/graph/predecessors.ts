/** Lookup of the nodes that a node of a graph directly depends on. */

/** Returns the nodes that a node directly depends on; null when the graph has no such node. */
export type PredecessorsOf = (node: string) => readonly string[] | null;

export function predecessorsOfNodes(
  nodes: readonly { readonly name: string; readonly after: readonly string[] }[],
): PredecessorsOf {
  const predecessorsByName = new Map(nodes.map((node) => [node.name, node.after]));
  return (node) => predecessorsByName.get(node) ?? null;
}
