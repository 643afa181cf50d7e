/** The waterfall as a chart: names on the left, bars on a time axis on the right. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { location } from "../../../router/router.js";
import { timeStyle } from "../../../shell/settings.js";
import { formatDuration, formatInstant } from "../../../ui/time.js";
import { VirtualRows } from "../../../ui/virtual-rows.js";
import { axisTicks } from "./axis-ticks.js";
import css from "./chart.module.css";
import type { ChartProps } from "./chart-props.js";
import { ChartRow } from "./chart-row.js";
import { type Card, SpanCard } from "./span-card.js";
import { type Segment, type TimeScale, timeScale } from "./time-scale.js";
import type { Row } from "./waterfall.js";

const rowHeight = 28;

export function Chart(props: ChartProps) {
  const { rows, from, until, isLive, selectedStep } = props;
  const scale = timeScale(rows, from, until, location.value.search.get("scale") !== "true");
  const [card, setCard] = useState<Card | null>(null);
  const selected = selectedStep === null ? -1 : rows.findIndex(({ node }) => node === selectedStep);
  return (
    <div class={css.chart}>
      <Axis scale={scale} isLive={isLive} from={from} />
      <div class={css.body}>
        <Grid scale={scale} isLive={isLive} />
        <VirtualRows
          count={rows.length}
          rowHeight={rowHeight}
          label="Steps, waits and children, by their starts"
          selected={selected < 0 ? null : selected}
          render={(index) => {
            const row = rows[index] as Row;
            return <ChartRow key={row.id} {...props} row={row} scale={scale} onCard={setCard} />;
          }}
        />
      </div>
      {card === null ? null : <SpanCard card={card} until={until} onClose={() => setCard(null)} />}
    </div>
  );
}

/** Clocks at the beginnings, even steps behind them, and how long each compressed stretch is. */
function Axis({ scale, isLive, from }: { readonly scale: TimeScale; readonly isLive: boolean; readonly from: number }) {
  const [track, width] = useWidth();
  const isUtc = timeStyle.value === "utc";
  const startDay = formatInstant(from, isUtc).slice(0, 10);
  const clock = (at: number) => {
    const text = formatInstant(at, isUtc);
    return text.slice(0, 10) === startDay ? text.slice(11, 19) : text.slice(5, 16);
  };
  return (
    <div class={css.axis}>
      <div class={css.axisName}>Step</div>
      <div class={css.track} ref={track}>
        {axisTicks(scale, width, clock).map(({ at, place, label }) =>
          label === "" ? null : (
            <span key={at} class={css.tick} style={{ left: `${place * 100}%` }}>
              {label}
            </span>
          ),
        )}
        {scale.segments
          .filter(({ isCompressed }) => isCompressed)
          .map((gap) => (
            <span
              key={gap.from}
              class={css.gapLabel}
              style={{ left: `${gap.start * 100}%`, width: gapLabelWidth(gap, isLive) }}
              title={`${formatDuration(gap.to - gap.from)} without executions, compressed`}
            >
              {(gap.end - gap.start) * width < 52 ? "≈" : formatDuration(gap.to - gap.from)}
            </span>
          ))}
        {isLive ? <span class={css.nowLabel}>now</span> : null}
      </div>
    </div>
  );
}

/** The present has a label of its own at the end of the axis. */
const gapLabelWidth = ({ start, end }: Segment, isLive: boolean) =>
  isLive && end > 0.999 ? `calc(${(end - start) * 100}% - 20px)` : `${(end - start) * 100}%`;

/** Lines behind all rows: breaks of compressed time, and the present. */
function Grid({ scale, isLive }: { readonly scale: TimeScale; readonly isLive: boolean }) {
  return (
    <div class={css.grid} aria-hidden="true">
      <div class={css.track}>
        {scale.segments
          .filter(({ isCompressed }) => isCompressed)
          .map((gap) => (
            <span
              key={gap.from}
              class={css.gap}
              style={{ left: `${gap.start * 100}%`, width: `${(gap.end - gap.start) * 100}%` }}
            />
          ))}
        {isLive ? <span class={css.now} /> : null}
      </div>
    </div>
  );
}

function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  useLayoutEffect(() => {
    if (element.current === null) return;
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 800));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width] as const;
}
