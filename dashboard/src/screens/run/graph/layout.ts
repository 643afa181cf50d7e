/** Places the boxes of a graph. Runs in a web worker, because a large graph takes hundreds of milliseconds. */
import { Graph, layout as layoutWithDagre } from "@dagrejs/dagre";
import { chooseBoxes, type Drawn, type DrawnBox, type DrawnOptions } from "./collapse.js";
import type { Layout, PlacedBox, PlacedEdge } from "./placed-boxes.js";
import { orderSiblings } from "./sibling-order.js";
import type { Structure } from "./structure.js";

export const boxHeight = 44;
/** What "completed · 12 m 05 s" needs: the layout does not depend on the states. */
const minWidth = 180;
const maxWidth = 280;
/** The width of a letter of the title, the space for the icon, and what the counts of a group need. */
const letterWidth = 7.2;
const iconSpace = 46;
const groupWidth = maxWidth;
/** Beyond this, dagre takes seconds; columns by depth are then good enough. */
const maxDagreEdges = 1_200;

export interface LayoutRequest extends DrawnOptions {
  readonly structure: Structure;
  /** The size of the place that the drawing has, which decides its direction. */
  readonly width: number;
  readonly height: number;
}

type Direction = "LR" | "TB";

export function layOut(request: LayoutRequest): Layout {
  const drawn = chooseBoxes(request.structure, request);
  const direction = directionOf(drawn, request);
  return drawn.edges.length > maxDagreEdges ? layOutByDepth(drawn, direction) : layOutByDagre(drawn, direction);
}

const widthOf = ({ kind, title }: DrawnBox): number => {
  const text = Math.ceil(title.length * letterWidth) + iconSpace;
  return Math.round(Math.max(kind === "node" ? minWidth : groupWidth, Math.min(maxWidth, text)));
};

function ranksOf({ boxes, edges }: Drawn): number[] {
  const ranks = new Array<number>(boxes.length).fill(0);
  // The boxes are not in topological order, so this repeats until nothing changes: at most once for each rank.
  for (let isChanged = true, rounds = 0; isChanged && rounds <= boxes.length; rounds += 1) {
    isChanged = false;
    for (const [from, to] of edges)
      if ((ranks[to] as number) <= (ranks[from] as number)) {
        ranks[to] = (ranks[from] as number) + 1;
        isChanged = true;
      }
  }
  return ranks;
}

/** The direction in which more of the graph can be read without zooming. */
function directionOf(drawn: Drawn, { width, height }: LayoutRequest): Direction {
  const ranks = ranksOf(drawn);
  const perRank = new Map<number, number>();
  for (const rank of ranks) perRank.set(rank, (perRank.get(rank) ?? 0) + 1);
  const widest = Math.max(1, ...perRank.values());
  const boxWidth = Math.max(minWidth, ...drawn.boxes.map(widthOf));
  const scaleOf = (columns: number, rows: number) =>
    Math.min(1, width / (columns * (boxWidth + 40)), height / (rows * (boxHeight + 28)));
  return scaleOf(perRank.size, widest) >= scaleOf(widest, perRank.size) ? "LR" : "TB";
}

function layOutByDagre({ boxes, edges }: Drawn, direction: Direction): Layout {
  const graph = new Graph({ multigraph: false });
  graph.setGraph({
    rankdir: direction,
    nodesep: direction === "LR" ? 16 : 24,
    ranksep: direction === "LR" ? 52 : 36,
    marginx: 4,
    marginy: 4,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const [index, box] of boxes.entries()) graph.setNode(String(index), { width: widthOf(box), height: boxHeight });
  for (const [from, to] of edges) graph.setEdge(String(from), String(to));
  layoutWithDagre(graph);
  const placed = boxes.map((box, index): PlacedBox => {
    const { x = 0, y = 0, width = 0 } = graph.node(String(index)) as { x?: number; y?: number; width?: number };
    return { ...box, width, x: Math.round(x - width / 2), y: Math.round(y - boxHeight / 2) };
  });
  const lines = edges.map(([from, to]): PlacedEdge => {
    const { points } = graph.edge(String(from), String(to)) as { points: PlacedEdge["points"] };
    return { from, to, points: points.map(({ x, y }) => ({ x: Math.round(x), y: Math.round(y) })) };
  });
  return orderSiblings({ boxes: placed, edges: lines, ...extentOf(placed) });
}

function layOutByDepth(drawn: Drawn, direction: Direction): Layout {
  const ranks = ranksOf(drawn);
  const filled = new Map<number, number>();
  const boxes = drawn.boxes.map((box, index): PlacedBox => {
    const rank = ranks[index] as number;
    const place = filled.get(rank) ?? 0;
    filled.set(rank, place + 1);
    const [column, row] = direction === "LR" ? [rank, place] : [place, rank];
    return { ...box, width: widthOf(box), x: 4 + column * (maxWidth + 56), y: 4 + row * (boxHeight + 20) };
  });
  const edges = drawn.edges.map(([from, to]): PlacedEdge => {
    const [a, b] = [boxes[from] as PlacedBox, boxes[to] as PlacedBox];
    const points =
      direction === "LR"
        ? [
            { x: a.x + a.width, y: a.y + boxHeight / 2 },
            { x: b.x, y: b.y + boxHeight / 2 },
          ]
        : [
            { x: a.x + a.width / 2, y: a.y + boxHeight },
            { x: b.x + b.width / 2, y: b.y },
          ];
    return { from, to, points };
  });
  return { boxes, edges, ...extentOf(boxes) };
}

const extentOf = (boxes: readonly PlacedBox[]) => ({
  width: Math.max(0, ...boxes.map(({ x, width }) => x + width)) + 4,
  height: Math.max(0, ...boxes.map(({ y }) => y + boxHeight)) + 4,
});
