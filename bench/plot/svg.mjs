// Helpers that write SVG: elements as text, one style for all charts, legible on light and dark pages.

const escaped = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

/** Numbers are rounded to tenths: more only makes the file longer. */
const attribute = ([name, value]) =>
  ` ${name}="${escaped(typeof value === "number" ? Math.round(value * 10) / 10 : value)}"`;

export function element(name, attributes, ...children) {
  const given = Object.entries(attributes).filter(([, value]) => value !== undefined);
  const inside = children.flat().join("");
  return `<${name}${given.map(attribute).join("")}${inside === "" ? "/>" : `>${inside}</${name}>`}`;
}

/** `anchor` is "start", "middle" or "end"; `kind` is a class of the style below. */
export const text = (x, y, content, { anchor = "start", kind = "ink", turned = false } = {}) =>
  element(
    "text",
    {
      x,
      y,
      class: kind,
      "text-anchor": anchor,
      transform: turned ? `rotate(-90 ${Math.round(x)} ${Math.round(y)})` : undefined,
    },
    escaped(content),
  );

export const line = (x1, y1, x2, y2, kind) => element("line", { x1, y1, x2, y2, class: kind });

/** Colours that colour-blind readers can distinguish, also by their lightness on both backgrounds. */
const light = {
  paper: "#ffffff",
  ink: "#1f2328",
  quiet: "#59636e",
  grid: "#e3e7eb",
  series: ["#2563c9", "#0d9488", "#d9730d", "#8b95a1", "#a855c7"],
};
const dark = {
  paper: "#0d1117",
  ink: "#e6edf3",
  quiet: "#9198a1",
  grid: "#2a3038",
  series: ["#6ea8fe", "#2dd4bf", "#fb9a4b", "#6b7684", "#d19bec"],
};

const coloursOf = ({ paper, ink, quiet, grid, series }) =>
  [
    `.paper{fill:${paper}}`,
    `.ink,.title{fill:${ink}}`,
    `.quiet,.small{fill:${quiet}}`,
    `.grid{stroke:${grid}}`,
    `.axis,.whisker{stroke:${quiet}}`,
    `.target{stroke:${ink}}`,
    ...series.flatMap((colour, n) => [`.fill${n}{fill:${colour}}`, `.line${n}{stroke:${colour}}`]),
  ].join("");

const style = [
  "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}",
  ".title{font-weight:600;font-size:13px}",
  ".small{font-size:11px}",
  ".grid,.axis,.whisker{stroke-width:1}",
  ".target{stroke-width:1.5;stroke-dasharray:5 4}",
  ".curve{fill:none;stroke-width:2.5;stroke-linejoin:round;stroke-linecap:round}",
  coloursOf(light),
  `@media (prefers-color-scheme:dark){${coloursOf(dark)}}`,
].join("");

/** The chart paints its own background, because it does not know the colours of the page. */
export function picture({ width, height, title }, ...children) {
  return `${element(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height, role: "img" },
    element("title", {}, escaped(title)),
    element("style", {}, style),
    element("rect", { width, height, rx: 6, class: "paper" }),
    ...children,
  )}\n`;
}
