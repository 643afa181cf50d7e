// Rows with a bar each and the names at the left: many contenders in one workload. Pawl has a colour of its own.

import { heading, roomOf } from "./panel.mjs";
import { scales, short } from "./scale.mjs";
import { element, line, text } from "./svg.mjs";

const rowHeight = 26;

export const rowPanelHeight = (rows) => 58 + rows * rowHeight + 26;

/** A bar has no true start on a logarithmic scale; here the shortest bar has at least the length of this ratio. */
const shortest = 3;

/** `rows` are `{ name, isOurs, value, min, max }`; a row without a value says that the contender does not take part. */
export function rowPanel({ title, unit, xScale = "log", rows }) {
  return (place) => {
    const room = roomOf(place, { left: 128, right: 58, bottom: 40 });
    const values = rows.flatMap(({ value, min, max }) =>
      value === undefined ? [] : [value, min ?? value, max ?? value],
    );
    const x = scales[xScale]([...values, Math.min(...values) / shortest], [room.left, room.right]);
    const bottom = room.top + rows.length * rowHeight;
    return [
      ...heading(place, title, unit),
      ...x.ticks.flatMap((tick) => [
        line(x.place(tick), room.top, x.place(tick), bottom, tick === x.ticks[0] ? "axis" : "grid"),
        text(x.place(tick), bottom + 16, short(tick), { anchor: "middle", kind: "small" }),
      ]),
      ...rows.flatMap((row, index) => drawRow(row, room.top + index * rowHeight, room, x)),
    ];
  };
}

function drawRow({ name, isOurs, value, min, max }, top, room, x) {
  const middle = top + rowHeight / 2;
  const label = text(room.left - 8, middle + 4, name, { anchor: "end", kind: isOurs ? "title" : "ink" });
  if (value === undefined) return [label, text(room.left + 8, middle + 4, "–", { kind: "small" })];
  const end = x.place(value);
  const beyond = Math.max(end, max === undefined ? end : x.place(max));
  return [
    label,
    element("rect", {
      x: x.base,
      y: top + 4,
      width: end - x.base,
      height: rowHeight - 8,
      rx: 2,
      class: isOurs ? "fill0" : "fill3",
    }),
    ...(min === undefined ? [] : [line(x.place(min), middle, x.place(max), middle, "whisker")]),
    text(beyond + 6, middle + 4, short(value), { kind: isOurs ? "title" : "small" }),
  ];
}
