/** What happened in the last hour or day, beside the time before: a chart, and a table that tells what changed. */
import { useMemo } from "preact/hooks";
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import {
  type Bucket,
  bucketsOf,
  changeText,
  type MinuteFigures,
  minuteMs,
  type Totals,
  totalsOf,
} from "../../figures/buckets.js";
import { FiguresChart, rangeText, type TimeRange } from "../../figures/figures-chart.js";
import { href, location, navigate } from "../../router/router.js";
import { searchOf } from "../../search/run-search.js";
import { databaseNow, secondTick } from "../../shell/me.js";
import { timeStyle } from "../../shell/settings.js";
import { formatCount } from "../../ui/format.js";
import { Loading, Section } from "../../ui/page.js";
import { Table } from "../../ui/table.js";
import css from "./activity.module.css";

const spans = { hour: { minutes: 60, refreshMs: 10_000 }, day: { minutes: 1_440, refreshMs: 60_000 } } as const;
type Span = keyof typeof spans;
const dayMinutes = 1_440;

const rows: readonly (readonly [keyof Totals, string])[] = [
  ["began", "Started"],
  ["completed", "Completed"],
  ["failed", "Failed"],
  ["paused", "Paused"],
  ["canceled", "Canceled"],
];

export function Activity() {
  void secondTick.value;
  const span: Span = location.value.search.get("span") === "day" ? "day" : "hour";
  const { minutes: length, refreshMs } = spans[span];
  // The question changes once a minute, and is the same for all who look.
  const now = Math.floor(databaseNow() / minuteMs) * minuteMs;
  const { data } = useQuery<Answer<"getFigures">>(
    "v1/figures",
    { from: now - (2 * length - 1) * minuteMs },
    { keepPrevious: true, minIntervalMs: refreshMs },
  );
  const yesterday = now - dayMinutes * minuteMs;
  const { data: sameHour } = useQuery<Answer<"getFigures">>(
    span === "hour" ? "v1/figures" : null,
    { from: yesterday - (length - 1) * minuteMs, to: yesterday },
    { keepPrevious: true, minIntervalMs: 60_000 },
  );
  return (
    <Section title="Activity" aside={<SpanChoice span={span} />}>
      {data === undefined ? (
        <Loading />
      ) : (
        <Figures minutes={data.minutes} span={span} length={length} yesterday={sameHour?.minutes ?? null} />
      )}
    </Section>
  );
}

function SpanChoice({ span }: { readonly span: Span }) {
  return (
    <nav class={css.spans} aria-label="How much time is shown">
      <a href={href("/")} {...(span === "hour" ? { "aria-current": "true" as const } : {})}>
        Last hour
      </a>
      <a href={href("/?span=day")} {...(span === "day" ? { "aria-current": "true" as const } : {})}>
        Since yesterday
      </a>
    </nav>
  );
}

const openRuns = ({ from, to }: TimeRange) => {
  const iso = (at: number) => new Date(at).toISOString().replace(/:00\.000Z$/, "Z");
  navigate(`/runs?q=${encodeURIComponent(searchOf({ after: iso(from), before: iso(to) }))}`);
};

function Figures({
  minutes,
  span,
  length,
  yesterday,
}: {
  readonly minutes: readonly MinuteFigures[];
  readonly span: Span;
  readonly length: number;
  readonly yesterday: readonly MinuteFigures[] | null;
}) {
  const present = minutes.slice(-length);
  const buckets = useMemo(() => bucketsOf(present, 96), [minutes]);
  const totals = totalsOf(present);
  const isUtc = timeStyle.value === "utc";
  const label = `${formatCount(totals.began)} runs started, ${formatCount(totals.completed)} completed and ${formatCount(totals.failed)} failed. The tables below have the numbers.`;
  return (
    <>
      <FiguresChart {...{ buckets, label, isUtc, height: 96, onSelect: openRuns }} />
      <Comparison span={span} totals={totals} before={totalsOf(minutes.slice(0, -length))} yesterday={yesterday} />
      <ChartTable buckets={buckets} isUtc={isUtc} />
    </>
  );
}

function Comparison({
  span,
  totals,
  before,
  yesterday,
}: {
  readonly span: Span;
  readonly totals: Totals;
  readonly before: Totals;
  readonly yesterday: readonly MinuteFigures[] | null;
}) {
  const sameHour = yesterday === null ? null : totalsOf(yesterday);
  const compared = (other: Totals | null, field: keyof Totals) =>
    other === null ? null : (
      <span class={css.compared}>
        {formatCount(other[field])} <em>{changeText(totals[field], other[field])}</em>
      </span>
    );
  return (
    <div class={css.comparison}>
      <Table
        label="What changed"
        rows={rows}
        keyOf={([field]) => field}
        columns={[
          {
            title: "Runs",
            cell: ([field, word]) => (
              <span class={css.word}>
                <i class={css[field]} />
                {word}
              </span>
            ),
          },
          {
            title: span === "hour" ? "Last hour" : "Last 24 hours",
            isNumber: true,
            cell: ([field]) => <b>{formatCount(totals[field])}</b>,
          },
          {
            title: span === "hour" ? "Hour before" : "24 hours before",
            isNumber: true,
            cell: ([field]) => compared(before, field),
          },
          ...(span === "hour"
            ? [
                {
                  title: "Same hour yesterday",
                  isNumber: true,
                  isMinor: true,
                  cell: ([field]: (typeof rows)[number]) => compared(sameHour, field),
                },
              ]
            : []),
        ]}
      />
    </div>
  );
}

/** The chart as a table, for people who cannot see it or want to copy its numbers. */
function ChartTable({ buckets, isUtc }: { readonly buckets: readonly Bucket[]; readonly isUtc: boolean }) {
  return (
    <details class={css.details}>
      <summary>The chart as a table</summary>
      <Table
        label="The chart as a table"
        rows={buckets.filter(({ began, completed, failed }) => began + completed + failed > 0).reverse()}
        keyOf={({ from }) => String(from)}
        columns={[
          {
            title: "Time",
            cell: (bucket) => (
              <a
                href={href(
                  `/runs?q=${encodeURIComponent(searchOf({ after: new Date(bucket.from).toISOString(), before: new Date(bucket.to).toISOString() }))}`,
                )}
              >
                {rangeText(bucket, isUtc)}
              </a>
            ),
          },
          ...rows.slice(0, 3).map(([field, title]) => ({
            title,
            isNumber: true,
            cell: (bucket: Bucket) => formatCount(bucket[field]),
          })),
        ]}
      />
    </details>
  );
}
