/** The nodes of a graph as a table: the twin of the drawing for screen readers, and for graphs of any size. */
import { useState } from "preact/hooks";
import { location, setSearch } from "../../../router/router.js";
import { Button } from "../../../ui/button.js";
import { escapeHidden, formatCount } from "../../../ui/format.js";
import { Empty } from "../../../ui/page.js";
import { Status } from "../../../ui/status.js";
import { type Column, Table } from "../../../ui/table.js";
import { formatDuration } from "../../../ui/time.js";
import { countStates, listText } from "./box-face.js";
import css from "./graph.module.css";
import type { GraphNode } from "./structure.js";

const pageSize = 200;

interface Row {
  readonly node: GraphNode;
  readonly tookMs: number;
}

interface NodeListProps {
  readonly nodes: readonly GraphNode[];
  readonly tookMs: readonly number[];
  readonly selected: string | null;
  readonly onSelect: (id: string | null) => void;
}

export function NodeList({ nodes, tookMs, selected, onSelect }: NodeListProps) {
  const state = location.value.search.get("nodes") ?? "";
  const [start, setStart] = useState(0);
  const rows = nodes
    .map((node, index): Row => ({ node, tookMs: tookMs[index] as number }))
    .filter(({ node }) => state === "" || node.state === state);
  const first = start < rows.length ? start : 0;
  const page = rows.slice(first, first + pageSize);
  return (
    <>
      <div class={css.filter}>
        <label>
          Show{" "}
          <select
            value={state}
            onChange={(event) => {
              setStart(0);
              setSearch({ nodes: event.currentTarget.value }, { replace: true });
            }}
          >
            <option value="">all nodes</option>
            {[...new Set([...countStates(nodes).keys(), ...(state === "" ? [] : [state])])].map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        {rows.length <= pageSize ? null : (
          <span class={css.pager}>
            <span>
              {formatCount(first + 1)} to {formatCount(first + page.length)} of {formatCount(rows.length)}
            </span>
            <Button disabled={first === 0} onClick={() => setStart(Math.max(0, first - pageSize))}>
              Earlier
            </Button>
            <Button disabled={first + pageSize >= rows.length} onClick={() => setStart(first + pageSize)}>
              Later
            </Button>
          </span>
        )}
      </div>
      {rows.length === 0 ? (
        <Empty title={`No node is ${state}`} icon="graph">
          Choose another state above.
        </Empty>
      ) : (
        <div class={css.list}>
          <Table label="Nodes" columns={columnsFor(selected, onSelect)} rows={page} keyOf={({ node }) => node.id} />
        </div>
      )}
    </>
  );
}

function columnsFor(selected: string | null, onSelect: NodeListProps["onSelect"]): readonly Column<Row>[] {
  return [
    {
      title: "Node",
      cell: ({ node }) => (
        <button
          type="button"
          class={`${css.name} ${node.id === selected ? css.selected : ""}`}
          aria-pressed={node.id === selected}
          onClick={() => onSelect(node.id)}
        >
          {escapeHidden(node.name)}
        </button>
      ),
    },
    { title: "State", cell: ({ node }) => (node.state === null ? null : <Status state={node.state} isSmall />) },
    { title: "Attempt", isNumber: true, isMinor: true, cell: ({ node }) => (node.attempt === 0 ? "–" : node.attempt) },
    {
      title: "Took",
      isNumber: true,
      cell: ({ tookMs }) => <span class="mono">{tookMs === 0 ? "–" : formatDuration(tookMs)}</span>,
    },
    {
      title: "After",
      isMinor: true,
      cell: ({ node }) => (
        <span class={css.muted}>{node.after.length === 0 ? "–" : listText(node.after.map(escapeHidden))}</span>
      ),
    },
    {
      title: "Error",
      isMinor: true,
      cell: ({ node }) => <span class={css.bad}>{escapeHidden(node.error ?? "")}</span>,
    },
  ];
}
