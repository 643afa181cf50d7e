/** What happened lately, above the list. A column or a range of columns sets the times of the search. */
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { bucketsOf, minuteMs, totalsOf } from "../../figures/buckets.js";
import { FiguresChart, type TimeRange } from "../../figures/figures-chart.js";
import { location, setSearch } from "../../router/router.js";
import { instantOf, type RunFilter, withTerm } from "../../search/run-search.js";
import { databaseNow, secondTick } from "../../shell/me.js";
import { timeStyle } from "../../shell/settings.js";
import { Button } from "../../ui/button.js";
import { formatCount } from "../../ui/format.js";
import { Icon } from "../../ui/icon.js";
import css from "./time-histogram.module.css";

const spans = { "1h": 60, "6h": 360, "24h": 1_440, "48h": 2_880 } as const;
type Span = keyof typeof spans;
const maxColumns = 96;
/** Processes write their figures every 10 seconds. */
const refreshMs = 10_000;

const storageKey = "pawl.runs.histogram";
const isOpen = signal(readIsOpen());

function readIsOpen(): boolean {
  try {
    const stored = localStorage.getItem(storageKey);
    if (stored !== null) return stored === "open";
  } catch {
    // Storage is switched off.
  }
  return window.innerWidth > 640 && window.innerHeight > 600;
}

function toggle(): void {
  isOpen.value = !isOpen.value;
  try {
    localStorage.setItem(storageKey, isOpen.value ? "open" : "closed");
  } catch {
    // Storage is switched off: the choice holds as long as the page.
  }
}

/** The range of the search; null if it has none. */
function rangeOf({ after, before }: RunFilter, now: number): TimeRange | null {
  if (after === undefined && before === undefined) return null;
  return {
    from: after === undefined ? 0 : instantOf(after, now),
    to: before === undefined ? now : instantOf(before, now),
  };
}

/** The minutes that are shown: the chosen span until now, or the range of the search if it is earlier and not too long. */
function windowOf(span: Span, range: TimeRange | null, now: number): TimeRange {
  const usual = { from: now - (spans[span] - 1) * minuteMs, to: now };
  if (range === null || range.from >= usual.from || range.to - range.from > spans["48h"] * minuteMs) return usual;
  return range.from > 0 ? range : usual;
}

export function TimeHistogram({ text, filter }: { readonly text: string; readonly filter: RunFilter }) {
  return (
    <section class={css.histogram} aria-label="Runs per minute">
      <button type="button" class={css.toggle} aria-expanded={isOpen.value} onClick={toggle}>
        <Icon name={isOpen.value ? "down" : "right"} size={12} />
        Activity
      </button>
      {isOpen.value ? <Open text={text} filter={filter} /> : null}
    </section>
  );
}

function Open({ text, filter }: { readonly text: string; readonly filter: RunFilter }) {
  void secondTick.value;
  const chosen = location.value.search.get("from") as Span | null;
  const span: Span = chosen !== null && chosen in spans ? chosen : "1h";
  // The question changes once a minute, and is the same for all who look.
  const now = Math.floor(databaseNow() / minuteMs) * minuteMs;
  const range = rangeOf(filter, now + minuteMs);
  const shown = windowOf(span, range, now);
  const query = { from: shown.from, to: shown.to === now ? null : shown.to, workflow: filter.workflow };
  const { data } = useQuery<Answer<"getFigures">>("v1/figures", query, {
    keepPrevious: true,
    minIntervalMs: refreshMs,
  });
  const buckets = useMemo(() => bucketsOf(data?.minutes ?? [], maxColumns), [data]);
  const totals = totalsOf(buckets);
  const select = ({ from, to }: TimeRange) => {
    const iso = (at: number) => new Date(at).toISOString().replace(/:00\.000Z$/, "Z");
    setSearch({ q: withTerm(withTerm(text, "after", iso(from)), "before", iso(to)) });
  };
  const label = `${formatCount(totals.began)} runs started and ${formatCount(totals.failed)} failed in this time.`;
  return (
    <>
      <div class={css.head}>
        <span class={css.legend}>
          <i class={css.began} /> {formatCount(totals.began)} started
        </span>
        <span class={css.legend}>
          <i class={css.failed} /> {formatCount(totals.failed)} failed
        </span>
        <span class={css.about}>
          {filter.workflow === undefined ? "all workflows" : filter.workflow}; drag to choose a time
        </span>
        {range === null ? null : (
          <Button
            kind="ghost"
            icon="close"
            onClick={() => setSearch({ q: withTerm(withTerm(text, "after", null), "before", null) })}
          >
            Any time
          </Button>
        )}
        <fieldset class={css.spans} aria-label="How much time is shown">
          {Object.keys(spans).map((name) => (
            <button
              key={name}
              type="button"
              class={css.span}
              aria-pressed={name === span}
              onClick={() => setSearch({ from: name === "1h" ? null : name }, { replace: true })}
            >
              {name.replace(/h$/, " h")}
            </button>
          ))}
        </fieldset>
      </div>
      {buckets.length === 0 ? (
        <div class={css.space} />
      ) : (
        <FiguresChart
          {...{ buckets, label, height: 48, isUtc: timeStyle.value === "utc", selected: range, onSelect: select }}
        />
      )}
    </>
  );
}
