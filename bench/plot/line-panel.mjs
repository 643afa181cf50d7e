// Curves over a size: how a figure grows.

import { heading, roomOf, targetLine, yAxis } from "./panel.mjs";
import { scales, short } from "./scale.mjs";
import { element, line, text } from "./svg.mjs";

/**
 * `series` are `{ name, points: [{ x, y, min, max }] }`, in the order of the legend; `xLabel` names what grows. `xTicks`
 * are written as they are where they are given; otherwise the values of x are.
 */
export function linePanel({ title, unit, xLabel, xTicks, xScale = "log", yScale = "linear", series, target }) {
  return (place) => {
    const room = roomOf(place);
    const points = series.flatMap((one) => one.points);
    const x = alongX(xScale, points, room);
    const y = scales[yScale](
      [
        ...points.flatMap(({ y, min, max }) => [y, min ?? y, max ?? y]),
        ...(target === undefined ? [] : [target.value]),
      ],
      [room.bottom, room.top],
    );
    const ticks =
      xTicks ?? [...new Set(points.map((point) => point.x))].map((value) => ({ value, label: short(value) }));
    return [
      ...heading(place, title, unit),
      ...yAxis(room, y),
      ...ticks.map(({ value, label }) => text(x(value), room.bottom + 17, label, { anchor: "middle", kind: "small" })),
      text((room.left + room.right) / 2, room.bottom + 34, xLabel, { anchor: "middle", kind: "small" }),
      ...(target === undefined ? [] : targetLine(room, y, target)),
      ...series.flatMap((one, index) => curve(one, index, x, y)),
    ];
  };
}

/** Some space at both ends, so that no point lies on an axis. */
function alongX(kind, points, room) {
  const of = kind === "log" ? Math.log10 : Number;
  const values = points.map(({ x }) => of(x));
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const [from, to] = [room.left + 24, room.right - 24];
  return (value) => from + ((of(value) - least) / (most - least || 1)) * (to - from);
}

function curve({ points }, index, x, y) {
  const path = points
    .map((point, n) => `${n === 0 ? "M" : "L"}${round(x(point.x))} ${round(y.place(point.y))}`)
    .join("");
  return [
    ...points.flatMap((point) =>
      point.min === undefined
        ? []
        : [line(x(point.x), y.place(point.min), x(point.x), y.place(point.max), `line${index}`)],
    ),
    element("path", { d: path, class: `curve line${index}` }),
    ...points.map((point) => element("circle", { cx: x(point.x), cy: y.place(point.y), r: 4, class: `fill${index}` })),
  ];
}

const round = (value) => Math.round(value * 10) / 10;
