/**
 * Puts siblings into the order of the boxes. Dagre orders nodes so that few edges cross; among nodes with the same neighbours
 * every order crosses as often, and it returns them in any.
 */
import type { Layout, PlacedBox, PlacedEdge } from "./placed-boxes.js";

export function orderSiblings(layout: Layout): Layout {
  const { boxes, edges } = layout;
  const neighbours: string[][] = boxes.map(() => []);
  for (const { from, to } of edges) {
    (neighbours[from] as string[]).push(`>${to}`);
    (neighbours[to] as string[]).push(`<${from}`);
  }
  const siblings = new Map<string, number[]>();
  for (const [index, names] of neighbours.entries()) {
    const key = `${(boxes[index] as PlacedBox).width} ${names.sort().join(" ")}`;
    siblings.set(key, [...(siblings.get(key) ?? []), index]);
  }
  // The box whose place each box takes.
  const placeOf = boxes.map((_, index) => index);
  for (const members of siblings.values()) {
    const at = (index: number) => boxes[index] as PlacedBox;
    const places = members.toSorted((a, b) => at(a).y - at(b).y || at(a).x - at(b).x);
    for (const [position, index] of members.entries()) placeOf[index] = places[position] as number;
  }
  return { ...layout, boxes: moveBoxes(boxes, placeOf), edges: moveEdges(edges, placeOf) };
}

const moveBoxes = (boxes: readonly PlacedBox[], placeOf: readonly number[]): PlacedBox[] =>
  boxes.map((box, index) => {
    const { x, y } = boxes[placeOf[index] as number] as PlacedBox;
    return { ...box, x, y };
  });

function moveEdges(edges: readonly PlacedEdge[], placeOf: readonly number[]): PlacedEdge[] {
  const pointsOf = new Map(edges.map(({ from, to, points }) => [`${from} ${to}`, points]));
  return edges.map(({ from, to, points }) => ({
    ...{ from, to },
    points: pointsOf.get(`${placeOf[from]} ${placeOf[to]}`) ?? points,
  }));
}
