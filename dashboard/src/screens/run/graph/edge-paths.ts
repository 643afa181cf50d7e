/** Edges as path data. All edges of a kind are one path, so that a thousand of them cost one element of the page. */
import type { PlacedEdge } from "./placed-boxes.js";

const arrowLength = 7;
const arrowWidth = 3.5;

export const linesOf = (edges: readonly PlacedEdge[]): string => edges.map(lineOf).join("");

/** A line through the points of the layout, with rounded corners. */
function lineOf({ points }: PlacedEdge): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  let path = `M${first.x} ${first.y}`;
  for (const [index, point] of rest.entries()) {
    const next = rest[index + 1];
    path +=
      next === undefined
        ? `L${point.x} ${point.y}`
        : `Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}`;
  }
  return path;
}

export const arrowsOf = (edges: readonly PlacedEdge[]): string => edges.map(arrowOf).join("");

function arrowOf({ points }: PlacedEdge): string {
  const [tip, before] = [points.at(-1), points.at(-2)];
  if (tip === undefined || before === undefined) return "";
  const length = Math.max(1, Math.hypot(tip.x - before.x, tip.y - before.y));
  const [dx, dy] = [(tip.x - before.x) / length, (tip.y - before.y) / length];
  const [x, y] = [tip.x - dx * arrowLength, tip.y - dy * arrowLength];
  const corner = (side: number) =>
    `${(x - dy * arrowWidth * side).toFixed(1)} ${(y + dx * arrowWidth * side).toFixed(1)}`;
  return `M${tip.x} ${tip.y}L${corner(1)}L${corner(-1)}Z`;
}
