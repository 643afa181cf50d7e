/** Where the arrow keys lead in a drawing. */
import { boxHeight } from "./layout.js";
import type { PlacedBox } from "./placed-boxes.js";

const directions: Readonly<Record<string, readonly [number, number]>> = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowDown: [0, 1],
  ArrowUp: [0, -1],
};

/** The nearest box in the direction of the key; null if the key is none of these, or if there is no such box. */
export function nextBox(boxes: readonly PlacedBox[], from: number, key: string): number | null {
  if (key === "Home") return 0;
  if (key === "End") return boxes.length - 1;
  const direction = directions[key];
  const start = boxes[from];
  if (direction === undefined || start === undefined) return null;
  const center = ({ x, y, width }: PlacedBox) => [x + width / 2, y + boxHeight / 2] as const;
  const [startX, startY] = center(start);
  let best: { readonly index: number; readonly distance: number } | null = null;
  for (const [index, box] of boxes.entries()) {
    const [x, y] = center(box);
    const along = (x - startX) * direction[0] + (y - startY) * direction[1];
    const aside = Math.abs((x - startX) * direction[1]) + Math.abs((y - startY) * direction[0]);
    // Boxes are wide and low: to the side, the row matters more, and up or down, the next row does.
    const distance = direction[0] === 0 ? along * 3 + aside : along + aside * 2;
    if (along > 4 && (best === null || distance < best.distance)) best = { index, distance };
  }
  return best?.index ?? null;
}
