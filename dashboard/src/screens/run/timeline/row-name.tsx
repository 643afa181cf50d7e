/** The left part of a row: its state, name, attempts, the switch of a group, and the link to a child. */
import { runHref } from "../../../router/router.js";
import { shortId } from "../../../ui/copy.js";
import { escapeHidden, formatCount } from "../../../ui/format.js";
import { Icon, type IconName } from "../../../ui/icon.js";
import { StatusIcon } from "../../../ui/status.js";
import css from "./chart.module.css";
import type { ChartProps } from "./chart-props.js";
import { groupText, rowName } from "./span-text.js";
import type { Row } from "./waterfall.js";

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

export function RowName(props: Pick<ChartProps, "groups" | "selectedStep"> & { readonly row: Row }) {
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
