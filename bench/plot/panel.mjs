// One diagram of a chart: its title, its position, its axes. The contents are drawn by other files.

import { short } from "./scale.mjs";
import { line, text } from "./svg.mjs";

/** The area inside the axes of a panel at `x`, `y`. */
export function roomOf({ x, y, width, height }, { left = 52, right = 14, top = 58, bottom = 44 } = {}) {
  return { left: x + left, right: x + width - right, top: y + top, bottom: y + height - bottom };
}

export const heading = ({ x, y }, title, unit) => [
  text(x + 14, y + 20, title, { kind: "title" }),
  ...(unit === undefined ? [] : [text(x + 14, y + 36, unit, { kind: "small" })]),
];

/** Lines across, each with its value at the left. */
export const yAxis = (room, scale) =>
  scale.ticks.flatMap((tick) => {
    const y = scale.place(tick);
    return [
      line(room.left, y, room.right, y, tick === scale.ticks[0] ? "axis" : "grid"),
      text(room.left - 7, y + 4, short(tick), { anchor: "end", kind: "small" }),
    ];
  });

/** A dashed line with a label. */
export const targetLine = (room, scale, { value, label }) => [
  line(room.left, scale.place(value), room.right, scale.place(value), "target"),
  text(room.left + 8, scale.place(value) + 15, label, { kind: "small" }),
];
