/**
 * Decides which boxes are drawn: one for each node, or one for many nodes that are alike. There are never more than
 * `maxDrawn`, whatever the graph looks like.
 */
import { type Structure, successorsOf, topology } from "./structure.js";

/** A page with more elements becomes slow to scroll and to read. */
export const maxDrawn = 300;
/** Fewer nodes that are alike are drawn one by one. */
const minGroup = 3;
const maxRounds = 8;

export interface ExpandedGroup {
  readonly key: string;
  /** The members that are shown first, such as those that failed. */
  readonly first: readonly number[];
  /** How many members are shown, if there is room. */
  readonly count: number;
}

/** How many members of a group are shown at first, and how many more each time. */
export const expandStep = 100;

export interface DrawnBox {
  /** Identifies the box in the page. */
  readonly key: string;
  /** `rest`: the members of an expanded group for which there is no room. `earlier`, `later`: what is beyond the window. */
  readonly kind: "node" | "group" | "rest" | "earlier" | "later";
  readonly title: string;
  readonly members: readonly number[];
}

export interface Drawn {
  readonly boxes: readonly DrawnBox[];
  /** Pairs of indexes of boxes. */
  readonly edges: readonly (readonly [number, number])[];
}

export interface DrawnOptions {
  readonly isGrouped: boolean;
  readonly expanded: readonly ExpandedGroup[];
  /** The position of the first box that is drawn when there are too many. */
  readonly windowStart: number;
}

/** "mutation_17" and "mutation_4" become "mutation_*". */
const patternOf = (name: string): string => name.replace(/\d+/g, "*");

export function chooseBoxes(structure: Structure, options: DrawnOptions): Drawn {
  const { order, depth } = topology(structure);
  let boxes = options.isGrouped
    ? boxesOf(structure, siblingKeys(structure))
    : structure.names.map((_, node) => nodeBox(structure, node));
  if (boxes.length > maxDrawn) boxes = boxesOf(structure, alikeKeys(structure, depth));
  boxes = expandGroups(structure, boxes, options.expanded);
  const position = new Array<number>(structure.names.length).fill(0);
  for (const [index, node] of order.entries()) position[node] = index;
  const rank = ({ members }: DrawnBox) => depth[members[0] as number] as number;
  const first = ({ members }: DrawnBox) => position[members[0] as number] as number;
  if (boxes.length > maxDrawn)
    boxes = windowOf(
      boxes.sort((a, b) => rank(a) - rank(b) || first(a) - first(b)),
      options.windowStart,
    );
  return { boxes, edges: edgesOf(structure, boxes) };
}

const nodeBox = ({ names }: Structure, node: number): DrawnBox => ({
  key: `node ${node}`,
  kind: "node",
  title: names[node] as string,
  members: [node],
});

function boxesOf(structure: Structure, keys: readonly string[]): DrawnBox[] {
  const groups = new Map<string, number[]>();
  for (const [node, key] of keys.entries()) {
    const members = groups.get(key);
    if (members === undefined) groups.set(key, [node]);
    else members.push(node);
  }
  return [...groups.values()].flatMap((members): DrawnBox[] => {
    if (members.length < minGroup) return members.map((node) => nodeBox(structure, node));
    const first = members[0] as number;
    const title = patternOf(structure.names[first] as string);
    return [{ key: `group ${first}`, kind: "group", title, members }];
  });
}

/** Siblings: the same predecessors, the same successors, and names that differ in digits only. */
function siblingKeys(structure: Structure): string[] {
  const successors = successorsOf(structure);
  const textOf = (list: readonly number[]) => list.toSorted((a, b) => a - b).join(",");
  return structure.names.map(
    (name, node) =>
      `${patternOf(name)}\n${textOf(structure.before[node] as readonly number[])}\n${textOf(successors[node] as number[])}`,
  );
}

/**
 * Nodes in the same place of parallel chains: their neighbours are alike, not the same. The depth is part of the key, so
 * every edge leads to a greater depth, and the groups cannot form a cycle.
 */
function alikeKeys(structure: Structure, depth: readonly number[]): string[] {
  const successors = successorsOf(structure);
  const numberOf = (keys: readonly string[]): number[] => {
    const numbers = new Map<string, number>();
    return keys.map((key) => {
      if (!numbers.has(key)) numbers.set(key, numbers.size);
      return numbers.get(key) as number;
    });
  };
  let classes = numberOf(structure.names.map((name, node) => `${depth[node]}\n${patternOf(name)}`));
  for (let round = 0, count = 0; round < maxRounds; round += 1) {
    const around = (list: readonly number[]) =>
      [...new Set(list.map((node) => classes[node]))].sort((a, b) => (a as number) - (b as number)).join(",");
    const refined = numberOf(
      classes.map(
        (own, node) =>
          `${own}|${around(structure.before[node] as readonly number[])}|${around(successors[node] as number[])}`,
      ),
    );
    const refinedCount = new Set(refined).size;
    if (refinedCount === count || refinedCount > maxDrawn) break;
    classes = refined;
    count = refinedCount;
  }
  return classes.map(String);
}

function expandGroups(
  structure: Structure,
  boxes: readonly DrawnBox[],
  expanded: readonly ExpandedGroup[],
): DrawnBox[] {
  const expandedOf = new Map(expanded.map((group) => [group.key, group]));
  let room = maxDrawn - boxes.length;
  return boxes.flatMap((box): DrawnBox[] => {
    const group = expandedOf.get(box.key);
    if (box.kind !== "group" || group === undefined || room < minGroup) return [box];
    const members = new Set(box.members);
    const wanted = [...new Set([...group.first.filter((node) => members.has(node)), ...box.members])];
    const most = Math.min(room, group.count);
    const fits = wanted.length - 1 <= most;
    const shown = fits ? wanted : wanted.slice(0, most);
    room -= fits ? wanted.length - 1 : most;
    const nodes = shown.map((node) => nodeBox(structure, node));
    if (fits) return nodes;
    const shownNodes = new Set(shown);
    const others = box.members.filter((node) => !shownNodes.has(node));
    return [...nodes, { key: `rest ${box.key}`, kind: "rest", title: `${box.title}, the others`, members: others }];
  });
}

/** @param boxes in topological order, so that what is before and what is after cannot form a cycle */
function windowOf(boxes: readonly DrawnBox[], windowStart: number): DrawnBox[] {
  const size = maxDrawn - 2;
  const start = Math.max(0, Math.min(windowStart, boxes.length - size));
  const beyond = (kind: "earlier" | "later", left: readonly DrawnBox[]): DrawnBox[] =>
    left.length === 0
      ? []
      : [{ key: kind, kind, title: `${kind} nodes`, members: left.flatMap(({ members }) => members) }];
  return [
    ...beyond("earlier", boxes.slice(0, start)),
    ...boxes.slice(start, start + size),
    ...beyond("later", boxes.slice(start + size)),
  ];
}

function edgesOf({ names, before }: Structure, boxes: readonly DrawnBox[]): [number, number][] {
  const boxOf = new Int32Array(names.length);
  for (const [index, { members }] of boxes.entries()) for (const node of members) boxOf[node] = index;
  const seen = new Set<number>();
  for (const [node, predecessors] of before.entries())
    for (const predecessor of predecessors) {
      const [from, to] = [boxOf[predecessor] as number, boxOf[node] as number];
      if (from !== to) seen.add(from * boxes.length + to);
    }
  return [...seen].map((edge) => [Math.floor(edge / boxes.length), edge % boxes.length]);
}
