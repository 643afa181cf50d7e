// A chart: panels side by side under one legend.

import { element, picture, text } from "./svg.mjs";

const panelWidth = 450;
const margin = 12;

/** `legend` are names in the order of the colours; `panels` are functions that draw themselves at a position. */
export function chart({ title, legend = [], panels, panelHeight = 300 }) {
  const width = panels.length * panelWidth + 2 * margin;
  const top = legend.length === 0 ? margin : 38;
  const height = top + panelHeight + margin;
  return picture(
    { width, height, title },
    drawLegend(legend),
    panels.flatMap((draw, index) =>
      draw({ x: margin + index * panelWidth, y: top, width: panelWidth, height: panelHeight }),
    ),
  );
}

function drawLegend(names) {
  let x = margin + 14;
  return names.flatMap((name, index) => {
    const at = x;
    x += 34 + name.length * 7;
    return [
      element("rect", { x: at, y: 15, width: 14, height: 14, rx: 3, class: `fill${index}` }),
      text(at + 20, 26, name),
    ];
  });
}
