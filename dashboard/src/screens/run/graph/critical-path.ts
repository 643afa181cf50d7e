/** The longest path by duration: what has to become faster for the run to become faster. */
import type { Structure } from "./structure.js";

export interface CriticalPath {
  /** The nodes of the path, from first to last. */
  readonly path: readonly number[];
  readonly totalMs: number;
}

/**
 * @param order the nodes in topological order
 * @param tookMs the duration of each node; 0 if it has not started
 * @returns null if nothing has run, or if the graph is one chain, of which every node would be critical
 */
export function criticalPath(
  { before }: Structure,
  order: readonly number[],
  tookMs: readonly number[],
): CriticalPath | null {
  const total = new Array<number>(before.length).fill(0);
  const previous = new Array<number>(before.length).fill(-1);
  let last = -1;
  for (const node of order) {
    let best = 0;
    for (const predecessor of before[node] as readonly number[])
      if ((total[predecessor] as number) > best) {
        best = total[predecessor] as number;
        previous[node] = predecessor;
      }
    total[node] = best + (tookMs[node] as number);
    // A node that has not run does not lengthen the path, so the path ends at the last one that has.
    if ((tookMs[node] as number) > 0 && (last === -1 || (total[node] as number) > (total[last] as number))) last = node;
  }
  if (last === -1) return null;
  const path: number[] = [];
  for (let node = last; node !== -1; node = previous[node] as number) path.push(node);
  path.reverse();
  const onPath = new Set(path);
  const hasChoice = path.length > 1 && tookMs.some((took, node) => took > 0 && !onPath.has(node));
  return hasChoice ? { path, totalMs: total[last] as number } : null;
}
