/** A run in the list: a row of columns, or two lines on narrow screens. The whole row is one link. */
import { useEffect, useRef } from "preact/hooks";
import { runHref } from "../../router/router.js";
import { shortId } from "../../ui/copy.js";
import { escapeHidden } from "../../ui/format.js";
import { Time } from "../../ui/time.js";
import { type RunColumn, StatusCell } from "./columns.js";
import type { Row } from "./run-list.js";
import css from "./run-row.module.css";
import { asCell, asListItem, asRow } from "./table-roles.js";

interface RowProps {
  readonly row: Row;
  readonly index: number;
  /** Whether the keyboard is at this row. */
  readonly isSelected: boolean;
}

/** The link of the row takes the focus when the keyboard comes to it, so that Enter and screen readers follow. */
function RowLink({ row: { run }, isSelected }: RowProps) {
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isSelected) link.current?.focus({ preventScroll: true });
  }, [isSelected]);
  return (
    <a ref={link} class={css.link} href={runHref(run.id)} title={escapeHidden(run.workflow)}>
      {escapeHidden(run.workflow)}
      <span class="unseen"> run {shortId(run.id)}</span>
    </a>
  );
}

export function RunRow(props: RowProps & { readonly columns: readonly RunColumn[]; readonly template: string }) {
  const { row, index, columns, template, isSelected } = props;
  return (
    <div
      class={`${css.row} ${row.isGone ? css.gone : ""}`}
      style={{ gridTemplateColumns: template }}
      {...asRow(index + 2)}
      data-run={row.run.id}
      data-selected={isSelected}
    >
      <div {...asCell} class={css.cell}>
        <RowLink {...props} />
      </div>
      <div {...asCell} class={`${css.cell} ${css.status}`}>
        <StatusCell row={row} />
      </div>
      {columns.map((column) => (
        <div key={column.id} {...asCell} class={`${css.cell} ${column.isNumber === true ? css.number : ""}`}>
          {column.cell(row.run)}
        </div>
      ))}
    </div>
  );
}

/** Two lines: workflow, time and status; then why it is not moving, or the id. */
export function RunCard(props: RowProps) {
  const { row, isSelected } = props;
  return (
    <div
      class={`${css.card} ${row.isGone ? css.gone : ""}`}
      {...asListItem}
      data-run={row.run.id}
      data-selected={isSelected}
    >
      <div class={css.cardLine}>
        <RowLink {...props} />
        <span class={css.cardTime}>
          <Time at={row.run.createdAt} />
        </span>
      </div>
      <div class={css.cardLine}>
        <StatusCell row={row} />
      </div>
    </div>
  );
}
