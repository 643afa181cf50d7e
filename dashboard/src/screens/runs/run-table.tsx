/** The rows of the list, of which only the visible ones are in the page, and what stands below the last one. */
import { useEffect, useRef, useState } from "preact/hooks";
import { navigate } from "../../router/router.js";
import { useShortcuts } from "../../shell/keyboard.js";
import { Button } from "../../ui/button.js";
import { formatCount, plural } from "../../ui/format.js";
import { VirtualRows } from "../../ui/virtual-rows.js";
import { type RunColumn, templateOf } from "./columns.js";
import { useIsNarrow } from "./narrow.js";
import type { RunListView } from "./run-list-view.js";
import { RunCard, RunRow } from "./run-row.js";
import css from "./run-table.module.css";
import { asColumnHeader, asRow, asScroller, asTable } from "./table-roles.js";

const rowHeight = 28;
const cardHeight = 60;

export function RunTable({ view, columns }: { readonly view: RunListView; readonly columns: readonly RunColumn[] }) {
  const { list } = view;
  const isNarrow = useIsNarrow();
  const scroller = useRef<HTMLDivElement>(null);
  const [selected, setSelected] = useState<number | null>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    scroller.current?.scrollTo(0, isFirst.current ? view.scrollTop : 0);
    if (!isFirst.current) setSelected(null);
    isFirst.current = false;
  }, [list]);
  const move = (step: number) =>
    setSelected((before) => Math.min(list.rowCount - 1, Math.max(0, before === null ? 0 : before + step)));
  const open = () => {
    const row = selected === null ? undefined : list.row(selected);
    if (row !== undefined) navigate(`/runs/${encodeURIComponent(row.run.id)}`);
  };
  useShortcuts(
    [
      { keys: "j", about: "Next run", run: () => move(1) },
      { keys: "k", about: "Previous run", run: () => move(-1) },
      { keys: "Enter", about: "Open the run", run: open },
    ],
    [list, selected],
  );
  const template = templateOf(columns);
  const render = (index: number) => {
    const row = list.row(index);
    if (row === undefined) return null;
    const props = { row, index, isSelected: index === selected };
    return isNarrow ? (
      <RunCard key={row.run.id} {...props} />
    ) : (
      <RunRow key={row.run.id} {...props} columns={columns} template={template} />
    );
  };
  const rows = (
    <VirtualRows
      count={list.rowCount}
      rowHeight={isNarrow ? cardHeight : rowHeight}
      label="Runs"
      role={isNarrow ? "list" : "rowgroup"}
      render={render}
      onRange={view.onRange}
      selected={selected}
    />
  );
  return (
    <div
      ref={scroller}
      class={css.scroller}
      aria-busy={view.isReplacing}
      {...asScroller("List of runs")}
      onScroll={(event) => view.remember(event.currentTarget.scrollTop)}
    >
      {isNarrow ? (
        rows
      ) : (
        <div {...asTable("Runs", list.next === null ? list.rowCount + 1 : -1)}>
          <HeadRow columns={columns} template={template} />
          {rows}
        </div>
      )}
      <ListEnd view={view} />
    </div>
  );
}

function HeadRow({ columns, template }: { readonly columns: readonly RunColumn[]; readonly template: string }) {
  return (
    <div class={css.head} style={{ gridTemplateColumns: template }} {...asRow(1)}>
      {["Workflow", "Status"].map((title) => (
        <div key={title} {...asColumnHeader}>
          {title}
        </div>
      ))}
      {columns.map(({ id, title, isNumber }) => (
        <div key={id} {...asColumnHeader} class={isNumber === true ? css.number : ""}>
          {title}
        </div>
      ))}
    </div>
  );
}

/** Below the last row: that there is more, that the server has stopped searching, or that this is all. */
function ListEnd({ view: { list, readMore } }: { readonly view: RunListView }) {
  if (list.error !== null)
    return (
      <p class={css.end} role="alert">
        The next runs could not be read: {list.error.message} <Button onClick={readMore}>Try again</Button>
      </p>
    );
  if (list.isCut)
    return (
      <p class={css.end} data-state="cut">
        {formatCount(10_000 * list.pageCount)} runs were examined at most, and {plural(list.rowCount, "run")}{" "}
        {list.rowCount === 1 ? "fits" : "fit"}. <Button onClick={readMore}>Search on</Button>
      </p>
    );
  if (list.next !== null) return <p class={css.end}>Reading more runs …</p>;
  return <p class={css.end}>{list.rowCount === 0 ? "" : `That is all: ${plural(list.rowCount, "run")}.`}</p>;
}
