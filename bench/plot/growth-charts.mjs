// The charts of the growth benchmark (bench/growth): for each, a name and a picture of the figures in its report.

import { chart } from "./chart.mjs";
import { columnPanel } from "./column-panel.mjs";
import { linePanel } from "./line-panel.mjs";

const storeNames = { postgres: "PostgreSQL", sqlite: "SQLite", mysql: "MariaDB" };
const nameOf = ({ store, label }) =>
  store === "mysql" && label !== undefined && !/MariaDB/.test(label) ? "MySQL" : (storeNames[store] ?? store);

/** @returns {[name: string, svg: string][]} */
export function growthCharts({ results }) {
  // Always in the same order, so that a store has the same colour everywhere.
  const ordered = Object.keys(storeNames).flatMap((name) => results.filter(({ store }) => store === name));
  return Object.entries(charts).flatMap(([part, { file, draw }]) => {
    const stores = ordered.filter((result) => result[part] !== undefined);
    return stores.length === 0 ? [] : [[file, draw(stores, part)]];
  });
}

const charts = {
  tables: { file: "growth-tables", draw: drawTables },
  long: { file: "growth-long-runs", draw: drawLongRuns },
  map: { file: "growth-maps", draw: drawMaps },
  processes: { file: "growth-processes", draw: drawProcesses },
  payloads: { file: "growth-payloads", draw: drawPayloads },
};

function drawTables(stores) {
  const { runs } = stores[0].tables.fill;
  const panelOf = (id, title) =>
    columnPanel({
      title,
      unit: "per second; the share that is left beneath",
      groups: stores.map((store) => {
        const { empty, big, ratio } = store.tables.works.find((work) => work.id === id);
        return { label: nameOf(store), note: `${Math.round(100 * ratio.median)} %`, columns: [empty, big].map(column) };
      }),
    });
  return chart({
    title: "Empty and big tables",
    legend: ["empty tables", `tables with ${(runs / 1e6).toFixed(2).replace(/0$/, "")} million runs`],
    panels: [panelOf("W1", "One-step workflows"), panelOf("W2", "Steps")],
  });
}

const column = ({ median, min, max }) => ({ value: median, min, max });

function drawLongRuns(stores, part) {
  const curves = (figure) => curvesOf(stores, part, "steps", figure);
  return chart({
    title: "Long runs",
    legend: stores.map(nameOf),
    panels: [
      linePanel({
        title: "A step of a run that has many",
        unit: "milliseconds per step, one after the other",
        xLabel: "steps of the run",
        series: curves("stepMs"),
      }),
      linePanel({
        title: "Taking such a run over from a process that was killed",
        unit: "milliseconds until its next step is entered",
        xLabel: "recorded steps",
        yScale: "log",
        series: curves("killedMs"),
        target: { value: 1000, label: "target for 10,000 steps: 1 s" },
      }),
    ],
  });
}

function drawMaps(stores, part) {
  return chart({
    title: "Maps",
    legend: stores.map(nameOf),
    panels: [
      linePanel({
        title: "A child of a map",
        unit: "milliseconds per child",
        xLabel: "children",
        series: curvesOf(stores, part, "children", "childMs"),
      }),
      linePanel({
        title: "Memory of the process",
        unit: "megabytes at most",
        xLabel: "children",
        series: curvesOf(stores, part, "children", "rssMb"),
      }),
    ],
  });
}

function drawProcesses(stores, part) {
  const panelOf = (id, title) =>
    columnPanel({
      title,
      unit: "per second",
      groups: stores.map((store) => ({
        label: nameOf(store),
        columns: store[part].filter((row) => row.id === id).map(({ rate }) => column(rate)),
      })),
    });
  const counts = [...new Set(stores[0][part].map((row) => row.processes))];
  return chart({
    title: "Worker processes",
    legend: counts.map((count) => `${count} worker process${count === 1 ? "" : "es"}`),
    panels: [panelOf("W1", "One-step workflows"), panelOf("W2", "Steps")],
  });
}

function drawPayloads(stores, part) {
  const xTicks = stores[0][part].map(({ bytes, label }) => ({ value: bytes, label }));
  const panelOf = (title, unit, figure) =>
    linePanel({
      title,
      unit,
      xLabel: "input and outputs",
      xTicks,
      yScale: "log",
      series: curvesOf(stores, part, "bytes", figure),
    });
  return chart({
    title: "Payloads",
    legend: stores.map(nameOf),
    panels: [
      panelOf("Steps with a payload", "steps per second", "stepsPerSecond"),
      panelOf("Payload that is stored", "megabytes per second", "megabytesPerSecond"),
    ],
  });
}

const curvesOf = (stores, part, along, figure) =>
  stores.map((store) => ({
    name: nameOf(store),
    points: store[part].map((row) => ({
      x: row[along],
      y: row[figure].median,
      min: row[figure].min,
      max: row[figure].max,
    })),
  }));
