/** The order of a graph, linear in nodes and edges: each node after all that it depends on, or the circle that prevents it. */

export type Edges = Iterable<readonly [node: string, after: readonly string[]]>;

/** `circle` is null, or why there is no order. */
interface SortResult {
  readonly order: string[];
  readonly cycle: string[] | null;
}

/** Kahn's way. Among those that could come next, those that were given first do. All that is named in `after` must be given. */
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

/** Backwards along what is waited for, until it comes round. Shown in the direction of the edges. */
function findCycle(predecessors: ReadonlyMap<string, readonly string[]>, sortedNodes: ReadonlySet<string>): string[] {
  const path: string[] = [];
  const seen = new Set<string>();
  let node = [...predecessors.keys()].find((one) => !sortedNodes.has(one)) as string;
  while (!seen.has(node)) {
    path.push(node);
    seen.add(node);
    node = predecessors.get(node)?.find((before) => !sortedNodes.has(before)) as string;
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

/** All that comes after this node, however far. */
export function descendantsIn(edges: Edges, node: string): string[] {
  const successors = successorsIn(edges);
  const descendants = new Set<string>();
  const stack = [node];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    for (const follower of successors.get(next) ?? []) {
      if (descendants.has(follower)) continue;
      descendants.add(follower);
      stack.push(follower);
    }
  }
  return [...descendants];
}
