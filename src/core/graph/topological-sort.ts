/** Topological sort in time proportional to the number of nodes and edges. */

export type Edges = Iterable<readonly [node: string, after: readonly string[]]>;

interface SortResult {
  /** The nodes, each after all nodes that it depends on; incomplete when the graph has a cycle. */
  readonly order: string[];
  /** The nodes of one cycle, with the first node repeated at the end; null when the graph has no cycle. */
  readonly cycle: string[] | null;
}

/**
 * Sorts with Kahn's algorithm. Nodes whose predecessors are complete at the same time keep their order in `edges`. Every
 * name in an `after` list must itself be a node of `edges`.
 */
export function topologicalSort(edges: Edges): SortResult {
  const predecessors = new Map(edges);
  const successors = successorsIn(predecessors);
  const remainingCounts = new Map<string, number>();
  const order: string[] = [];
  for (const [node, after] of predecessors) {
    remainingCounts.set(node, after.length);
    if (after.length === 0) order.push(node);
  }
  for (let index = 0; index < order.length; index += 1) {
    for (const follower of successors.get(order[index] as string) ?? []) {
      const remaining = (remainingCounts.get(follower) as number) - 1;
      remainingCounts.set(follower, remaining);
      if (remaining === 0) order.push(follower);
    }
  }
  if (order.length === predecessors.size) return { order, cycle: null };
  return { order, cycle: findCycle(predecessors, new Set(order)) };
}

/**
 * Starts at a node that could not be sorted, and follows unsorted predecessors until a node repeats. The cycle is returned
 * from predecessor to successor.
 */
function findCycle(predecessors: ReadonlyMap<string, readonly string[]>, sortedNodes: ReadonlySet<string>): string[] {
  const path: string[] = [];
  const seen = new Set<string>();
  let node = [...predecessors.keys()].find((candidate) => !sortedNodes.has(candidate)) as string;
  while (!seen.has(node)) {
    path.push(node);
    seen.add(node);
    node = predecessors.get(node)?.find((predecessor) => !sortedNodes.has(predecessor)) as string;
  }
  return [...path.slice(path.indexOf(node)), node].reverse();
}

function successorsIn(edges: Edges): Map<string, string[]> {
  const successors = new Map<string, string[]>();
  for (const [node, after] of edges) {
    for (const predecessor of after) {
      const list = successors.get(predecessor);
      if (list === undefined) successors.set(predecessor, [node]);
      else list.push(node);
    }
  }
  return successors;
}

/** All direct and indirect successors of the node. */
export function descendantsIn(edges: Edges, node: string): string[] {
  const successors = successorsIn(edges);
  const descendants = new Set<string>();
  const stack = [node];
  for (let currentNode = stack.pop(); currentNode !== undefined; currentNode = stack.pop()) {
    for (const follower of successors.get(currentNode) ?? []) {
      if (descendants.has(follower)) continue;
      descendants.add(follower);
      stack.push(follower);
    }
  }
  return [...descendants];
}
