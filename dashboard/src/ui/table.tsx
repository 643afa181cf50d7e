/** A table of a few rows. Long lists use VirtualRows. */
import type { ComponentChildren } from "preact";
import css from "./table.module.css";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers are aligned at their end. */
  readonly isNumber?: boolean;
  /** Columns that are left out on narrow screens. */
  readonly isMinor?: boolean;
  /** For columns of buttons: only screen readers get the title. */
  readonly isTitleHidden?: boolean;
}

export function Table<Row>({
  label,
  columns,
  rows,
  keyOf,
  isStacked = false,
}: {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Whether narrow screens show the first column over the others, with their titles before the values. */
  readonly isStacked?: boolean;
}) {
  const classOf = ({ isNumber, isMinor }: Column<Row>) =>
    `${isNumber === true ? css.number : ""} ${isMinor === true ? css.minor : ""}`;
  return (
    <table class={`${css.table} ${isStacked ? css.stacked : ""}`} aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.title} scope="col" class={classOf(column)}>
              {column.isTitleHidden === true ? <span class="unseen">{column.title}</span> : column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column) => (
              <td
                key={column.title}
                class={classOf(column)}
                {...(isStacked && column.isTitleHidden !== true ? { "data-title": column.title } : {})}
              >
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
