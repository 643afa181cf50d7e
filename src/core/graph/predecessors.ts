/** What the nodes of a graph come after, by their names. */

/** null: there is no such node. */
export type PredecessorsOf = (node: string) => readonly string[] | null;

export function predecessorsOfNodes(
  nodes: readonly { readonly name: string; readonly after: readonly string[] }[],
): PredecessorsOf {
  const after = new Map(nodes.map((node) => [node.name, node.after]));
  return (node) => after.get(node) ?? null;
}
