/**
 * The structure of a graph: names and predecessors, without states. Nodes are named by their index, so that a graph of 10,000
 * nodes is cheap to compare and to hand to the worker that lays it out.
 */

/** A node as the drawing and the list show it. */
export interface GraphNode {
  /** The key of the step in the log. */
  readonly id: string;
  readonly name: string;
  /** The names of its predecessors. */
  readonly after: readonly string[];
  /** Null: the node belongs to a definition, which has no states. */
  readonly state: string | null;
  readonly attempt: number;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly error: string | null;
  /** How many runs failed at this step; only in definitions. */
  readonly failures?: number;
}

export interface Structure {
  readonly names: readonly string[];
  /** The predecessors of each node. */
  readonly before: readonly (readonly number[])[];
  readonly edgeCount: number;
}

export function structureOf(nodes: readonly GraphNode[]): Structure {
  const indexOf = new Map(nodes.map(({ name }, index) => [name, index]));
  const before = nodes.map(({ after }) =>
    after.map((name) => indexOf.get(name)).filter((index) => index !== undefined),
  );
  return {
    names: nodes.map(({ name }) => name),
    before,
    edgeCount: before.reduce((sum, { length }) => sum + length, 0),
  };
}

/** Two answers with the same structure share one layout, however the states differ. */
export const isSameStructure = (a: Structure, b: Structure): boolean =>
  a.edgeCount === b.edgeCount &&
  a.names.length === b.names.length &&
  a.names.every((name, index) => name === b.names[index]) &&
  a.before.every((list, index) => isSameList(list, b.before[index] as readonly number[]));

const isSameList = (a: readonly number[], b: readonly number[]) =>
  a.length === b.length && a.every((value, index) => value === b[index]);

export function successorsOf({ before }: Structure): number[][] {
  const successors: number[][] = before.map(() => []);
  for (const [node, predecessors] of before.entries())
    for (const predecessor of predecessors) (successors[predecessor] as number[]).push(node);
  return successors;
}

/** The nodes in topological order, and the length of the longest path to each. A cycle cannot be declared. */
export function topology(structure: Structure): {
  readonly order: readonly number[];
  readonly depth: readonly number[];
} {
  const { before } = structure;
  const successors = successorsOf(structure);
  const open = before.map(({ length }) => length);
  const depth = new Array<number>(before.length).fill(0);
  const order = before.flatMap(({ length }, node) => (length === 0 ? [node] : []));
  for (const node of order)
    for (const next of successors[node] as number[]) {
      depth[next] = Math.max(depth[next] as number, (depth[node] as number) + 1);
      open[next] = (open[next] as number) - 1;
      if (open[next] === 0) order.push(next);
    }
  return { order, depth };
}
