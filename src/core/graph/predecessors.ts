/** The predecessors of the nodes of a graph, by name. */

/** Returns the nodes that a node depends on; null when there is no such node. */
export type PredecessorsOf = (node: string) => readonly string[] | null;

export function predecessorsOfNodes(
  nodes: readonly { readonly name: string; readonly after: readonly string[] }[],
): PredecessorsOf {
  const after = new Map(nodes.map((node) => [node.name, node.after]));
  return (node) => after.get(node) ?? null;
}
