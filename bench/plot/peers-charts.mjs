// The charts of the comparison with peers (bench/peers): two workloads each, on logarithmic scales.

import { chart } from "./chart.mjs";
import { rowPanel, rowPanelHeight } from "./row-panel.mjs";

const charts = [
  {
    file: "peers-throughput",
    title: "Throughput, more is better",
    panels: {
      W1: ["One-step workflows", "per second, more is better"],
      W2: ["Steps, runs of 10 steps side by side", "per second, more is better"],
    },
  },
  {
    file: "peers-latency",
    title: "Latency, less is better",
    panels: {
      W3: ["A step of a run that is alone", "milliseconds, less is better"],
      W4: ["From start() until the step is entered", "milliseconds (median), less is better"],
    },
  },
  {
    file: "peers-fan-out",
    title: "Fan-out, less is better",
    panels: {
      W5s: ["1,000 parallel steps of one run", "seconds, less is better"],
      W5c: ["1,000 children of one run", "seconds, less is better"],
    },
  },
];

/** @returns {[name: string, svg: string][]} */
export function peersCharts({ results: contenders }) {
  return charts.flatMap(({ file, title, panels }) => {
    const drawn = Object.entries(panels).flatMap(([id, [heading, unit]]) => {
      if (contenders.every(({ figures }) => figures[id] === undefined)) return [];
      const rows = contenders.map(({ name, label, figures: { [id]: figure } }) => ({
        name: label,
        isOurs: name === "pawl",
        value: figure?.median,
        min: figure?.min,
        max: figure?.max,
      }));
      return [rowPanel({ title: heading, unit, rows })];
    });
    const panelHeight = rowPanelHeight(contenders.length);
    return drawn.length === 0 ? [] : [[file, chart({ title, panels: drawn, panelHeight })]];
  });
}
