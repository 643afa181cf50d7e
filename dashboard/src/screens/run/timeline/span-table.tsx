/** The table twin of the chart: the same spans in words. */
import { useState } from "preact/hooks";
import { runHref } from "../../../router/router.js";
import { timeStyle } from "../../../shell/settings.js";
import { Button } from "../../../ui/button.js";
import { Id } from "../../../ui/copy.js";
import { escapeHidden, formatCount } from "../../../ui/format.js";
import { StatusIcon } from "../../../ui/status.js";
import { type Column, Table } from "../../../ui/table.js";
import { formatDuration, formatInstant } from "../../../ui/time.js";
import type { ChartProps } from "./chart-props.js";
import css from "./span-table.module.css";
import { groupText, rowName, spanDuration, spanEnd, spanTitle } from "./span-text.js";
import type { Row, Span } from "./waterfall.js";

type TableProps = Omit<ChartProps, "from">;

interface Line {
  readonly row: Row;
  /** null: the row has not begun. */
  readonly span: Span | null;
  readonly isFirst: boolean;
  readonly key: string;
}

const linesPerPage = 200;

export function SpanTable(props: TableProps) {
  const [page, setPage] = useState(0);
  const lines = props.rows.flatMap(linesOf);
  const pages = Math.max(1, Math.ceil(lines.length / linesPerPage));
  const first = Math.min(page, pages - 1) * linesPerPage;
  const shown = lines.slice(first, first + linesPerPage);
  return (
    <div class={css.frame}>
      <Table label="What the run spent its time on" columns={columnsOf(props)} rows={shown} keyOf={({ key }) => key} />
      {pages === 1 ? null : (
        <div class={css.paging}>
          <span>
            {formatCount(first + 1)}–{formatCount(first + shown.length)} of {formatCount(lines.length)}
          </span>
          <Button icon="left" disabled={first === 0} onClick={() => setPage(first / linesPerPage - 1)}>
            Previous
          </Button>
          <Button
            icon="right"
            disabled={first + shown.length >= lines.length}
            onClick={() => setPage(first / linesPerPage + 1)}
          >
            Next
          </Button>
        </div>
      )}
    </div>
  );
}

function linesOf(row: Row): Line[] {
  if (row.spans.length === 0) return [{ row, span: null, isFirst: true, key: row.id }];
  return row.spans.map((span, index) => ({ row, span, isFirst: index === 0, key: `${row.id} ${index}` }));
}

const columnsOf = (props: TableProps): Column<Line>[] => [
  { title: "Step", cell: (line) => <LineName line={line} {...props} /> },
  { title: "What", cell: ({ span }) => (span === null ? "" : spanTitle(span)) },
  { title: "State", cell: stateOfLine, isMinor: true },
  { title: "From", cell: ({ span }) => instantText(span), isMinor: true },
  { title: "Took", cell: ({ span }) => (span === null ? "" : tookText(span, props.until)), isNumber: true },
  { title: "Worker", cell: ({ span }) => escapeHidden(span?.worker ?? ""), isMinor: true },
];

const stateOfLine = ({ row, span }: Line): string => {
  if (span === null) return row.state === "pending" ? "still to come" : row.state;
  return span.reason === null ? spanEnd(span) : `${spanEnd(span)}: ${escapeHidden(span.reason)}`;
};

/** The table tells exact times, whatever style the page has: the chart tells the rest. */
const instantText = (span: Span | null) =>
  span === null ? (
    ""
  ) : (
    <span class="mono">{formatInstant(span.from, timeStyle.value === "utc", { withMs: true })}</span>
  );

const tookText = (span: Span, until: number) =>
  `${formatDuration(spanDuration(span, until))}${span.to === null ? " so far" : ""}`;

function LineName({ line, groups, onSelectStep }: TableProps & { readonly line: Line }) {
  const { row, isFirst } = line;
  const { node, group, child } = row;
  const name = rowName(row);
  return (
    <span class={css.name} style={{ "--depth": row.depth }}>
      {isFirst ? <StatusIcon state={row.state} /> : <span class={css.noIcon} />}
      {node === null ? (
        <span class={css.text}>{name}</span>
      ) : (
        <button type="button" class={css.text} onClick={() => onSelectStep(node)}>
          {name}
        </button>
      )}
      {group === null ? null : (
        <button
          type="button"
          class={css.group}
          aria-expanded={groups.isOpen(group.id)}
          aria-label={`${groups.isOpen(group.id) ? "Hide" : "Show"} the ${formatCount(group.count)} rows of ${name}`}
          title={groupText(row)}
          onClick={() => groups.toggle(group.id)}
        >
          ×{formatCount(group.count)}
        </button>
      )}
      {child?.runId == null ? null : <Id id={child.runId} to={runHref(child.runId)} />}
    </span>
  );
}
