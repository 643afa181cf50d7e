import { Bar } from "../../ui/bar.js";
import { formatBytes, formatCount } from "../../ui/format.js";
import { Section } from "../../ui/page.js";
import { type Column, Table } from "../../ui/table.js";
import css from "./database.module.css";
import type { Database } from "./database-answer.js";

type TableSize = Database["tables"][number];

/** What each table is for. */
const purposes: Readonly<Record<string, string>> = {
  runs: "one row for each run",
  tasks: "runs that have not ended",
  events: "the logs of the runs",
  inbox: "messages that no run has read yet",
  cursors: "how far resumable steps have come",
  workers: "workers of the last day",
  workflows: "registered workflows",
  queues: "paused queues",
  figures: "numbers per minute of two weeks",
  migrations: "changes of the tables",
};

/** These databases keep the sizes as statistics. */
const lagging = new Set(["MySQL", "MariaDB"]);

const totalOf = ({ bytes, indexBytes }: TableSize) => (bytes ?? 0) + (indexBytes ?? 0);

export function TableSizes({ tables, engine }: Database) {
  const hasBytes = tables.some(({ bytes }) => bytes !== null);
  // Without bytes, the bars compare the numbers of rows.
  const weightOf = hasBytes ? totalOf : ({ rows }: TableSize) => rows;
  const largest = Math.max(1, ...tables.map(weightOf));
  const hasEstimates = tables.some(({ rowsAre }) => rowsAre === "estimated");
  return (
    <Section
      title="Tables"
      aside={hasEstimates ? "~ estimated by the database" : "rows are counted up to 10,000"}
      isFlush
    >
      <div class={css.tables}>
        <Table
          label="Tables"
          columns={columnsFor(hasBytes, (table) => weightOf(table) / largest)}
          rows={tables.toSorted((a, b) => weightOf(b) - weightOf(a))}
          keyOf={({ name }) => name}
        />
      </div>
      {hasBytes ? null : <p class={css.note}>This database does not tell the sizes of its tables.</p>}
      {lagging.has(engine) ? (
        <p class={css.note}>{engine} updates the sizes now and then, so they may lag behind.</p>
      ) : null}
    </Section>
  );
}

const columnsFor = (hasBytes: boolean, shareOf: (table: TableSize) => number): readonly Column<TableSize>[] => [
  {
    title: "Table",
    cell: ({ name }) => (
      <span class={css.tableName}>
        <span class="mono">{name}</span> <span class={css.muted}>{purposes[name]}</span>
      </span>
    ),
  },
  { title: "Rows", isNumber: true, cell: (table) => <Rows {...table} /> },
  ...(hasBytes
    ? ([
        { title: "Data", isNumber: true, isMinor: true, cell: ({ bytes }) => <Bytes value={bytes} /> },
        { title: "Indexes", isNumber: true, isMinor: true, cell: ({ indexBytes }) => <Bytes value={indexBytes} /> },
        { title: "Total", isNumber: true, cell: (table) => <Bytes value={totalOf(table)} /> },
      ] satisfies Column<TableSize>[])
    : []),
  {
    title: "Share",
    isMinor: true,
    isTitleHidden: true,
    cell: (table) => (
      <span class={css.bar}>
        <Bar share={shareOf(table)} />
      </span>
    ),
  },
];

function Rows({ rows, rowsAre }: TableSize) {
  const text = { exact: "", capped: "+", estimated: "" }[rowsAre];
  return (
    <span class={rows === 0 ? css.faint : ""} title={rowsAre}>
      {rowsAre === "estimated" ? "~ " : ""}
      {formatCount(rows)}
      {text}
    </span>
  );
}

const Bytes = ({ value }: { readonly value: number | null }) =>
  value === null ? (
    <span class={css.faint}>–</span>
  ) : (
    <span class={value === 0 ? css.faint : ""}>{formatBytes(value)}</span>
  );
