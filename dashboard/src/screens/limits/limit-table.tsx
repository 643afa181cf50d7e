import { href } from "../../router/router.js";
import { databaseNow, secondTick } from "../../shell/me.js";
import { escapeHidden, formatCapped } from "../../ui/format.js";
import { Icon } from "../../ui/icon.js";
import { type Column, Table } from "../../ui/table.js";
import { formatRelative } from "../../ui/time.js";
import { allowances, type Limit, limitAddress, whenFull } from "./limit.js";
import css from "./limits.module.css";

export function LimitTable({ limits }: { readonly limits: readonly Limit[] }) {
  return (
    <div class={css.table}>
      <Table label="Limits" columns={columns} rows={limits} keyOf={({ name }) => name} isStacked />
    </div>
  );
}

const columns: readonly Column<Limit>[] = [
  { title: "Limit", cell: (limit) => <NameCell {...limit} /> },
  { title: "Allows", cell: (limit) => <AllowsCell {...limit} /> },
  { title: "In use", isNumber: true, cell: ({ inUse, inUseCapped }) => <Count value={inUse} isCapped={inUseCapped} /> },
  { title: "Waiting", isNumber: true, cell: (limit) => <WaitingCell {...limit} /> },
  { title: "Override", cell: (limit) => <OverrideCell {...limit} /> },
];

/** Zeros are faint, so that the numbers that matter stand out. */
function Count({ value, isCapped }: { readonly value: number; readonly isCapped: boolean }) {
  return <span class={value === 0 ? css.none : ""}>{formatCapped(value, isCapped)}</span>;
}

function NameCell(limit: Limit) {
  const { name, while: heldWhile } = limit;
  const full = whenFull(limit);
  return (
    <div class={css.stack}>
      <a class={css.name} href={href(limitAddress(name))} data-limit>
        {escapeHidden(name)}
      </a>
      {heldWhile === "open" ? <span class={css.muted}>held until the end of a run</span> : null}
      {full === null ? null : <span class={css.muted}>when full, {full}</span>}
    </div>
  );
}

function AllowsCell({ inForce, override, concurrency, rate }: Limit) {
  return (
    <div class={css.stack}>
      {allowances(inForce).map((text) => (
        <span key={text}>{text}</span>
      ))}
      {override === null ? null : <span class={css.muted}>code: {allowances({ concurrency, rate }).join(", ")}</span>}
    </div>
  );
}

function WaitingCell({ waiting, waitingCapped }: Limit) {
  if (waiting === 0) return <Count value={0} isCapped={waitingCapped} />;
  return (
    <span class={css.waiting}>
      <Icon name="late" size={12} /> {formatCapped(waiting, waitingCapped)}
    </span>
  );
}

function OverrideCell({ override }: Limit) {
  if (override === null) return <span class={css.none}>none</span>;
  void secondTick.value;
  const { by, until, reason } = override;
  const end = until === null ? "until cleared" : `ends ${formatRelative(Date.parse(until), databaseNow())}`;
  return (
    <div class={css.stack}>
      <span class={css.overridden}>{end}</span>
      <span class={`${css.muted} ${css.clamped}`} title={reason === null ? "" : escapeHidden(reason)}>
        {by === null ? "" : `by ${escapeHidden(by)}`}
        {by !== null && reason !== null ? ": " : ""}
        {reason === null ? "" : escapeHidden(reason)}
      </span>
    </div>
  );
}
