import { timeStyle } from "../../../shell/settings.js";
import { toneOf } from "../../../ui/status.js";
import bars from "./bar.module.css";
import css from "./chart.module.css";
import type { ChartProps } from "./chart-props.js";
import { RowName } from "./row-name.js";
import type { Card } from "./span-card.js";
import { rowText, spanLabel } from "./span-text.js";
import type { TimeScale } from "./time-scale.js";
import type { Row, Span } from "./waterfall.js";

interface ChartRowProps extends ChartProps {
  readonly row: Row;
  readonly scale: TimeScale;
  readonly onCard: (card: Card | null) => void;
}

export function ChartRow(props: ChartRowProps) {
  const { row, selectedStep } = props;
  const isSelected = row.node !== null && row.node === selectedStep;
  const classes = [css.row, isSelected ? css.selected : "", row.state === "pending" ? css.pending : ""];
  return (
    // biome-ignore lint/a11y/useSemanticElements: the rows of a virtual list are no direct children of the list
    <div
      class={classes.join(" ")}
      role="listitem"
      data-row={row.id}
      onClick={() => activate(props)}
      onKeyDown={moveFocus}
    >
      <div class={css.name} style={{ "--depth": row.depth }}>
        <RowName {...props} />
      </div>
      <div class={css.cell}>
        <div class={css.track}>
          <Bars {...props} />
        </div>
      </div>
    </div>
  );
}

/** A click selects the step, or opens the group. */
function activate({ row, groups, onSelectStep, selectedStep }: ChartRowProps): void {
  if (row.node !== null) onSelectStep(row.node === selectedStep ? null : row.node);
  else if (row.group !== null) groups.toggle(row.group.id);
}

function Bars({ row, scale, until, onCard }: ChartRowProps) {
  if (row.state === "pending" && row.spans.length === 0)
    return (
      <span class={css.toCome}>
        <span class="unseen">still to come</span>
      </span>
    );
  const isUtc = timeStyle.value === "utc";
  const places = row.spans.map((span) => ({ start: scale.place(span.from), end: scale.place(span.to ?? until) }));
  return (
    <>
      {row.kind === "run" ? <span class={css.runLine} /> : null}
      {row.spans.map((span, index) => {
        const { start, end } = places[index] as { start: number; end: number };
        const show = (element: HTMLElement) => onCard({ row, span, place: element.getBoundingClientRect() });
        return (
          <button
            key={`${span.kind} ${span.from} ${index}`}
            type="button"
            tabIndex={-1}
            class={barClass(span)}
            style={{ left: `${start * 100}%`, width: `${(end - start) * 100}%` }}
            aria-label={spanLabel(row, span, until, isUtc)}
            onMouseEnter={(event) => show(event.currentTarget)}
            onFocus={(event) => show(event.currentTarget)}
            onMouseLeave={() => onCard(null)}
            onBlur={() => onCard(null)}
          />
        );
      })}
      <RowDuration {...{ row, until, places }} />
    </>
  );
}

const barClass = (span: Span): string =>
  [
    bars.bar,
    bars[span.kind],
    span.kind === "execution" ? bars[toneOf(span.state)] : "",
    span.to === null ? bars.open : "",
    span.isCut ? bars.cut : "",
  ]
    .filter(Boolean)
    .join(" ");

interface Place {
  readonly start: number;
  readonly end: number;
}

/** How long the row took: behind its last bar, before its first one, or in its widest one, wherever there is room. */
function RowDuration(props: { readonly row: Row; readonly until: number; readonly places: readonly Place[] }) {
  const { row, until, places } = props;
  if (places.length === 0 || row.kind === "run") return null;
  const text = rowText(row, until);
  const end = Math.max(...places.map((place) => place.end));
  const start = Math.min(...places.map((place) => place.start));
  const at = (style: Record<string, string>, extra = "") => (
    <span class={`${css.took} ${extra}`} style={style}>
      {text}
    </span>
  );
  if (end <= 0.78) return at({ left: `${end * 100}%` });
  if (start >= 0.24) return at({ right: `${(1 - start) * 100}%` });
  const widest = places.reduce((best, place) => (place.end - place.start > best.end - best.start ? place : best));
  return widest.end - widest.start < 0.2 ? null : at({ left: `${widest.start * 100}%` }, css.inside);
}

/** Arrow keys: up and down go to other rows, left and right through the bars of a row. */
function moveFocus(event: KeyboardEvent & { readonly currentTarget: HTMLElement }): void {
  const row = event.currentTarget;
  const targets = [...row.querySelectorAll<HTMLElement>(`[data-name], .${bars.bar}`)];
  const index = targets.indexOf(document.activeElement as HTMLElement);
  const next =
    event.key === "ArrowRight"
      ? targets[index + 1]
      : event.key === "ArrowLeft"
        ? targets[index - 1]
        : event.key === "ArrowDown"
          ? row.nextElementSibling?.querySelector<HTMLElement>("[data-name]")
          : event.key === "ArrowUp"
            ? row.previousElementSibling?.querySelector<HTMLElement>("[data-name]")
            : undefined;
  if (next === undefined || next === null) return;
  event.preventDefault();
  next.focus();
}
