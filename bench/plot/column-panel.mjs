// Columns side by side in groups: a few cases compared, for each of a few subjects.

import { heading, roomOf, yAxis } from "./panel.mjs";
import { scales, short } from "./scale.mjs";
import { element, line, text } from "./svg.mjs";

/** `groups` are `{ label, note, columns: [{ value, min, max, below }] }`; a column's colour is that of its position. */
export function columnPanel({ title, unit, yScale = "linear", groups }) {
  return (place) => {
    const room = roomOf(place);
    const values = groups.flatMap(({ columns }) => columns.flatMap(({ value, max }) => [value, max ?? value]));
    const y = scales[yScale](values, [room.bottom, room.top]);
    const groupWidth = (room.right - room.left) / groups.length;
    return [
      ...heading(place, title, unit),
      ...yAxis(room, y),
      ...groups.flatMap((group, index) => drawGroup(group, room.left + index * groupWidth, groupWidth, room, y)),
    ];
  };
}

function drawGroup({ label, note, columns }, left, width, room, y) {
  const gap = 4;
  const columnWidth = Math.min(44, (width * 0.72 - gap * (columns.length - 1)) / columns.length);
  const whole = columns.length * columnWidth + gap * (columns.length - 1);
  const from = left + (width - whole) / 2;
  const middle = left + width / 2;
  return [
    ...columns.flatMap((column, index) =>
      drawColumn(column, index, from + index * (columnWidth + gap), columnWidth, y),
    ),
    text(middle, room.bottom + 17, label, { anchor: "middle" }),
    ...(note === undefined ? [] : [text(middle, room.bottom + 34, note, { anchor: "middle", kind: "small" })]),
  ];
}

function drawColumn({ value, min, max }, index, x, width, y) {
  const top = y.place(value);
  const middle = x + width / 2;
  const spread = min === undefined ? [] : [line(middle, y.place(min), middle, y.place(max), "whisker")];
  const above = Math.min(top, max === undefined ? top : y.place(max));
  return [
    element("rect", { x, y: top, width, height: y.base - top, rx: 2, class: `fill${index}` }),
    ...spread,
    text(middle, above - 5, short(value), { anchor: "middle", kind: "small" }),
  ];
}
