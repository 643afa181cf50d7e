/** One row of the chart: what it is, and its bars. */
import { runHref } from "../../../router/router.js";
import { timeStyle } from "../../../shell/settings.js";
import { shortId } from "../../../ui/copy.js";
import { escapeHidden, formatCount } from "../../../ui/format.js";
import { Icon, type IconName } from "../../../ui/icon.js";
import { StatusIcon, toneOf } from "../../../ui/status.js";
import bars from "./bar.module.css";
import css from "./chart.module.css";
import type { ChartProps } from "./chart-props.js";
import type { Card } from "./span-card.js";
import { groupText, rowName, rowText, spanLabel } from "./span-text.js";
import type { TimeScale } from "./time-scale.js";
import type { Row, Span } from "./waterfall.js";

interface ChartRowProps extends ChartProps {
  readonly row: Row;
  readonly scale: TimeScale;
  readonly onCard: (card: Card | null) => void;
}

const kindIcons: Readonly<Partial<Record<Row["kind"], IconName>>> = {
  sleep: "clock",
  signal: "signal",
  child: "runs",
  map: "runs",
  branch: "graph",
  compensation: "retry",
};

const kindWords: Readonly<Record<Row["kind"], string>> = {
  run: "the run itself",
  step: "step",
  sleep: "sleep",
  signal: "wait for a signal",
  child: "child run",
  map: "children of a map",
  branch: "branch",
  compensation: "compensation",
};

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

function RowName(props: ChartRowProps) {
  const { row, groups, selectedStep } = props;
  const { group, child } = row;
  const name = rowName(row);
  const icon = kindIcons[row.kind];
  const isOpen = group !== null && groups.isOpen(group.id);
  const canActivate = row.node !== null || group !== null;
  return (
    <>
      {group === null ? (
        <span class={css.noToggle} />
      ) : (
        <button
          type="button"
          class={css.toggle}
          aria-expanded={isOpen}
          aria-label={`${isOpen ? "Hide" : "Show"} the ${formatCount(group.count)} rows of ${name}`}
          onClick={(event) => {
            event.stopPropagation();
            groups.toggle(group.id);
          }}
        >
          <Icon name={isOpen ? "down" : "right"} size={12} />
        </button>
      )}
      <StatusIcon state={row.state} />
      {icon === undefined ? null : (
        <span class={css.kind} title={kindWords[row.kind]}>
          <Icon name={icon} size={12} />
        </span>
      )}
      {canActivate ? (
        <button
          type="button"
          class={css.nameButton}
          aria-pressed={row.node === null ? undefined : row.node === selectedStep}
          title={`${name} (${kindWords[row.kind]})`}
          data-name
        >
          {name}
        </button>
      ) : (
        <span class={css.nameText} title={name}>
          {name}
        </span>
      )}
      <RowNotes row={row} />
      {child?.runId == null ? null : (
        <a
          class={css.child}
          href={runHref(child.runId)}
          title={`Open the run ${child.runId} of ${child.workflow}`}
          onClick={(event) => event.stopPropagation()}
        >
          {shortId(child.runId)}
        </a>
      )}
    </>
  );
}

function RowNotes({ row }: { readonly row: Row }) {
  if (row.group !== null)
    return (
      <span class={css.count} title={`${formatCount(row.group.count)}: ${groupText(row)}`}>
        ×{formatCount(row.group.count)}
      </span>
    );
  if (row.attempts > 1)
    return (
      <span class={css.count} title={`${row.attempts} attempts`}>
        {row.attempts} att.
      </span>
    );
  if (row.kind === "branch" && row.detail !== null) return <span class={css.count}>{escapeHidden(row.detail)}</span>;
  return null;
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
