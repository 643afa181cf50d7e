/** What happened to the runs of a workflow in the last hours, as a chart and as a table. */
import { useEffect, useRef, useState } from "preact/hooks";
import type UPlot from "uplot";
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { location, setSearch } from "../../router/router.js";
import { databaseNow } from "../../shell/me.js";
import { theme, timeStyle } from "../../shell/settings.js";
import { formatCount } from "../../ui/format.js";
import { Failure, Loading, Section } from "../../ui/page.js";
import { Table } from "../../ui/table.js";
import { formatInstant } from "../../ui/time.js";
import { bucketed, type Minute } from "./figures-buckets.js";
import css from "./figures-chart.module.css";

const ranges = [1, 6, 24] as const;
const hourMs = 3_600_000;
/** A new address for every minute would read everything anew every minute, beside the live updates. */
const fromStepMs = 5 * 60_000;
const maxTableRows = 60;

export function FiguresChart({ workflow }: { readonly workflow: string }) {
  const chosen = Number(location.value.search.get("hours"));
  const hours = ranges.find((range) => range === chosen) ?? ranges[0];
  const from = Math.floor((databaseNow() - hours * hourMs) / fromStepMs) * fromStepMs;
  const { data, error } = useQuery<Answer<"getFigures">>(
    "v1/figures",
    { workflow, ...(hours === 1 ? {} : { from: new Date(from).toISOString() }) },
    { keepPrevious: true, minIntervalMs: hours === 1 ? 2_000 : 10_000 },
  );
  return (
    <Section title="Per minute" aside={<RangeChoice hours={hours} />}>
      {data === undefined ? error === null ? <Loading /> : <Failure error={error} /> : <Chart minutes={data.minutes} />}
    </Section>
  );
}

function RangeChoice({ hours }: { readonly hours: number }) {
  return (
    <label class={css.range}>
      Last{" "}
      <select
        value={String(hours)}
        onChange={(event) =>
          setSearch({ hours: event.currentTarget.value === "1" ? null : event.currentTarget.value }, { replace: true })
        }
      >
        {ranges.map((range) => (
          <option key={range} value={String(range)}>
            {range === 1 ? "hour" : `${range} hours`}
          </option>
        ))}
      </select>
    </label>
  );
}

const series = [
  { name: "began", label: "Began", color: "var(--running)", dash: [] },
  { name: "completed", label: "Completed", color: "var(--completed)", dash: [6, 3] },
  { name: "failed", label: "Failed", color: "var(--failed)", dash: [2, 3] },
] as const;

function Chart({ minutes }: { readonly minutes: readonly Minute[] }) {
  const sums = series.map(({ name }) => minutes.reduce((sum, minute) => sum + minute[name], 0));
  return (
    <>
      <ul class={css.legend}>
        {series.map(({ name, label, color, dash }, index) => (
          <li key={name}>
            <svg width="20" height="8" aria-hidden="true">
              <line x1="0" y1="4" x2="20" y2="4" stroke={color} stroke-width="2" stroke-dasharray={dash.join(" ")} />
            </svg>
            {label}: {formatCount(sums[index] as number)}
          </li>
        ))}
      </ul>
      <Canvas minutes={minutes} />
      <details class={css.twin}>
        <summary>Show the numbers as a table</summary>
        <FiguresTable minutes={minutes} />
      </details>
    </>
  );
}

function FiguresTable({ minutes }: { readonly minutes: readonly Minute[] }) {
  const rows = bucketed(minutes, maxTableRows).toReversed();
  return (
    <div class={css.table}>
      <Table
        label="Runs that began and ended"
        rows={rows}
        keyOf={({ at }) => at}
        columns={[
          {
            title: "From",
            cell: ({ at }) => (
              <span class="mono">{formatInstant(Date.parse(at), timeStyle.value === "utc").slice(0, 16)}</span>
            ),
          },
          { title: "Began", isNumber: true, cell: ({ began }) => formatCount(began) },
          { title: "Completed", isNumber: true, cell: ({ completed }) => formatCount(completed) },
          { title: "Failed", isNumber: true, cell: ({ failed }) => formatCount(failed) },
        ]}
      />
    </div>
  );
}

/** uPlot is loaded when the first chart is shown. */
const loadPlot = async () => {
  const [{ default: Plot }] = await Promise.all([import("uplot"), import("uplot/dist/uPlot.min.css")]);
  return Plot;
};

const chartHeight = 180;

function Canvas({ minutes }: { readonly minutes: readonly Minute[] }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const [isMissing, setMissing] = useState(false);
  const data: [number[], ...number[][]] = [
    minutes.map(({ at }) => Date.parse(at) / 1_000),
    ...series.map(({ name }) => minutes.map((minute) => minute[name])),
  ];
  const latest = useRef(data);
  latest.current = data;
  const isUtc = timeStyle.value === "utc";
  const chosenTheme = theme.value;
  useEffect(() => {
    const element = place.current;
    let isGone = false;
    const draw = async () => {
      try {
        const Plot = await loadPlot();
        if (isGone || element === null) return;
        plot.current = new Plot(plotOptions(element, isUtc, Plot), latest.current, element);
      } catch {
        setMissing(true);
      }
    };
    void draw();
    const observer = new ResizeObserver(() => {
      if (element !== null) plot.current?.setSize({ width: element.clientWidth, height: chartHeight });
    });
    if (element !== null) observer.observe(element);
    return () => {
      isGone = true;
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [isUtc, chosenTheme]);
  useEffect(() => plot.current?.setData(data), [minutes]);
  if (isMissing) return <p class={css.missing}>The chart could not be loaded. The table below has its numbers.</p>;
  return <div ref={place} class={css.plot} aria-hidden="true" />;
}

function plotOptions(element: HTMLElement, isUtc: boolean, Plot: typeof UPlot) {
  const color = (value: string) => resolveColor(element, value);
  const axis = {
    stroke: color("var(--text-muted)"),
    grid: { stroke: color("var(--border)"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height: chartHeight,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    ...(isUtc ? { tzDate: (seconds: number) => Plot.tzDate(new Date(seconds * 1_000), "Etc/UTC") } : {}),
    scales: { y: { range: (_: unknown, __: number, max: number): [number, number] => [0, Math.max(4, max * 1.1)] } },
    axes: [
      { ...axis, size: 28, values: (_: unknown, ticks: number[]) => ticks.map((tick) => clock(tick, isUtc)) },
      { ...axis, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 50_000, 100_000] },
    ],
    series: [
      {},
      ...series.map(({ label, color: stroke, dash }) => ({
        ...{ label, stroke: color(stroke), width: 1.5, points: { show: false } },
        ...(dash.length === 0 ? {} : { dash: [...dash] }),
      })),
    ],
  };
}

const clock = (seconds: number, isUtc: boolean): string => formatInstant(seconds * 1_000, isUtc).slice(11, 16);

/** A canvas does not know the tokens, so the browser is asked which colour they are. */
function resolveColor(element: HTMLElement, value: string): string {
  const probe = document.createElement("span");
  probe.style.color = value;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
