/**
 * Columns of what happened per minute: the runs that began, and on top of the baseline those that failed. A click takes a
 * column, a drag takes several.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { formatCount } from "../ui/format.js";
import { formatInstant } from "../ui/time.js";
import { type Bucket, niceMaximum } from "./buckets.js";
import css from "./figures-chart.module.css";

export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

interface Drag {
  readonly anchor: number;
  readonly current: number;
}

export function FiguresChart({
  buckets,
  label,
  height,
  isUtc,
  selected = null,
  onSelect,
}: {
  readonly buckets: readonly Bucket[];
  readonly label: string;
  readonly height: number;
  readonly isUtc: boolean;
  /** The range that is marked; null: none. */
  readonly selected?: TimeRange | null;
  readonly onSelect: (range: TimeRange) => void;
}) {
  const plot = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const [drag, setDrag] = useState<Drag | null>(null);
  const top = niceMaximum(
    Math.max(0, ...buckets.map(({ began, completed, failed }) => Math.max(began, completed, failed))),
  );
  const indexAt = (event: PointerEvent): number => {
    const box = (plot.current as HTMLElement).getBoundingClientRect();
    const index = Math.floor(((event.clientX - box.left) / box.width) * buckets.length);
    return Math.min(buckets.length - 1, Math.max(0, index));
  };
  useEffect(() => {
    if (drag === null) return;
    const cancel = (event: KeyboardEvent) => event.key === "Escape" && setDrag(null);
    window.addEventListener("keydown", cancel);
    return () => window.removeEventListener("keydown", cancel);
  }, [drag !== null]);
  const finish = () => {
    if (drag === null) return;
    const first = buckets[Math.min(drag.anchor, drag.current)] as Bucket;
    const last = buckets[Math.max(drag.anchor, drag.current)] as Bucket;
    setDrag(null);
    onSelect({ from: first.from, to: last.to });
  };
  const dragged =
    drag === null
      ? null
      : {
          from: (buckets[Math.min(drag.anchor, drag.current)] as Bucket).from,
          to: (buckets[Math.max(drag.anchor, drag.current)] as Bucket).to,
        };
  return (
    <div class={css.chart}>
      <div class={css.axis} style={{ height: `${height}px` }} aria-hidden="true">
        <span>{formatCount(top)}</span>
        <span>0</span>
      </div>
      <div class={css.main}>
        <div
          ref={plot}
          class={css.plot}
          style={{ height: `${height}px` }}
          role="img"
          aria-label={label}
          onPointerDown={(event) => {
            if (event.button !== 0) return;
            const index = indexAt(event);
            event.currentTarget.setPointerCapture(event.pointerId);
            setDrag({ anchor: index, current: index });
          }}
          onPointerMove={(event) => {
            const index = indexAt(event);
            setHovered(index);
            if (drag !== null) setDrag({ ...drag, current: index });
          }}
          onPointerUp={finish}
          onPointerLeave={() => setHovered(null)}
        >
          <Columns buckets={buckets} top={top} />
          <Band buckets={buckets} range={dragged ?? selected} isDragged={dragged !== null} />
          {hovered === null || buckets[hovered] === undefined ? null : (
            <Hint bucket={buckets[hovered]} share={(hovered + 0.5) / buckets.length} isUtc={isUtc} />
          )}
        </div>
        <Times buckets={buckets} isUtc={isUtc} />
      </div>
    </div>
  );
}

function Columns({ buckets, top }: { readonly buckets: readonly Bucket[]; readonly top: number }) {
  const heightOf = (value: number) => (value === 0 ? 0 : Math.max(2, (value / top) * 100));
  return (
    <svg class={css.columns} viewBox={`0 0 ${buckets.length} 100`} preserveAspectRatio="none" aria-hidden="true">
      {buckets.map(({ from, began, failed }, index) => (
        <g key={from}>
          <rect x={index + 0.12} width={0.76} y={100 - heightOf(began)} height={heightOf(began)} class={css.began} />
          <rect x={index + 0.12} width={0.76} y={100 - heightOf(failed)} height={heightOf(failed)} class={css.failed} />
        </g>
      ))}
    </svg>
  );
}

function Band({
  buckets,
  range,
  isDragged,
}: {
  readonly buckets: readonly Bucket[];
  readonly range: TimeRange | null;
  readonly isDragged: boolean;
}) {
  const start = buckets[0]?.from ?? 0;
  const end = buckets.at(-1)?.to ?? 1;
  if (range === null || range.to <= start || range.from >= end) return null;
  const share = (at: number) => ((Math.min(end, Math.max(start, at)) - start) / (end - start)) * 100;
  return (
    <span
      class={`${css.band} ${isDragged ? css.dragged : ""}`}
      style={{ left: `${share(range.from)}%`, width: `${share(range.to) - share(range.from)}%` }}
    />
  );
}

function Hint({ bucket, share, isUtc }: { readonly bucket: Bucket; readonly share: number; readonly isUtc: boolean }) {
  return (
    <>
      <span class={css.line} style={{ left: `${share * 100}%` }} />
      <span class={css.hint} style={share > 0.5 ? { right: `${(1 - share) * 100}%` } : { left: `${share * 100}%` }}>
        <b>{rangeText(bucket, isUtc)}</b>
        <span>{formatCount(bucket.began)} started</span>
        <span>{formatCount(bucket.completed)} completed</span>
        <span>{formatCount(bucket.failed)} failed</span>
        {bucket.paused === 0 ? null : <span>{formatCount(bucket.paused)} paused</span>}
      </span>
    </>
  );
}

const clock = (at: number, isUtc: boolean) => formatInstant(at, isUtc).slice(11, 16);

/** "16:40" for a minute, "16:40 – 16:55" for several. */
export const rangeText = ({ from, to }: TimeRange, isUtc: boolean): string =>
  to - from <= 60_000 ? clock(from, isUtc) : `${clock(from, isUtc)} – ${clock(to, isUtc)}`;

const marks = 5;

function Times({ buckets, isUtc }: { readonly buckets: readonly Bucket[]; readonly isUtc: boolean }) {
  const step = Math.max(1, Math.floor(buckets.length / marks));
  return (
    <div class={css.times} aria-hidden="true">
      {buckets.map(({ from }, index) =>
        index % step === 0 && index + step / 2 < buckets.length ? (
          <span key={from} style={{ left: `${(index / buckets.length) * 100}%` }}>
            {clock(from, isUtc)}
          </span>
        ) : null,
      )}
    </div>
  );
}
