/** The order of a graph, linear in nodes and edges: each node after all that it depends on, or the circle that prevents it. */

export type Edges = Iterable<readonly [node: string, after: readonly string[]]>;

/** `circle` is null, or why there is no order. */
interface Order {
  readonly order: string[];
  readonly circle: string[] | null;
}

/** Kahn's way. Among those that could come next, those that were given first do. All that is named in `after` must be given. */
export function orderOf(edges: Edges): Order {
  const given = new Map(edges);
  const followers = followersIn(given);
  const missing = new Map<string, number>();
  const order: string[] = [];
  for (const [node, after] of given) {
    missing.set(node, after.length);
    if (after.length === 0) order.push(node);
  }
  for (let index = 0; index < order.length; index += 1) {
    for (const follower of followers.get(order[index] as string) ?? []) {
      const left = (missing.get(follower) as number) - 1;
      missing.set(follower, left);
      if (left === 0) order.push(follower);
    }
  }
  if (order.length === given.size) return { order, circle: null };
  return { order, circle: circleIn(given, new Set(order)) };
}

/** Backwards along what is waited for, until it comes round. Shown in the direction of the edges. */
function circleIn(given: ReadonlyMap<string, readonly string[]>, fine: ReadonlySet<string>): string[] {
  const path: string[] = [];
  const seen = new Set<string>();
  let node = [...given.keys()].find((one) => !fine.has(one)) as string;
  while (!seen.has(node)) {
    path.push(node);
    seen.add(node);
    node = given.get(node)?.find((before) => !fine.has(before)) as string;
  }
  return [...path.slice(path.indexOf(node)), node].reverse();
}

function followersIn(edges: Edges): Map<string, string[]> {
  const followers = new Map<string, string[]>();
  for (const [node, after] of edges) {
    for (const before of after) {
      const list = followers.get(before);
      if (list === undefined) followers.set(before, [node]);
      else list.push(node);
    }
  }
  return followers;
}

/** All that comes after this node, however far. */
export function descendantsIn(edges: Edges, node: string): string[] {
  const followers = followersIn(edges);
  const found = new Set<string>();
  const open = [node];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const follower of followers.get(next) ?? []) {
      if (found.has(follower)) continue;
      found.add(follower);
      open.push(follower);
    }
  }
  return [...found];
}
