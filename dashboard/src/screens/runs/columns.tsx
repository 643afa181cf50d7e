/** The columns of the list of runs. Status and workflow are always there; the others are a choice. */
import type { ComponentChildren } from "preact";
import { databaseNow, secondTick } from "../../shell/me.js";
import { timeStyle } from "../../shell/settings.js";
import { Id } from "../../ui/copy.js";
import { escapeHidden } from "../../ui/format.js";
import { Status } from "../../ui/status.js";
import { formatInstant, formatRelative, Time, Took } from "../../ui/time.js";
import css from "./columns.module.css";
import { errorOf, explanationOf, stepOf } from "./explanation.js";
import type { ListedRun, Row } from "./run-list.js";

export interface RunColumn {
  readonly id: string;
  readonly title: string;
  /** The width, as in `grid-template-columns`. It must not depend on the content: each row is a grid of its own. */
  readonly width: string | (() => string);
  readonly isNumber?: boolean;
  readonly cell: (run: ListedRun) => ComponentChildren;
}

const clipped = (text: string | null) =>
  text === null || text === "" ? null : (
    <span class={css.clipped} title={escapeHidden(text)}>
      {escapeHidden(text)}
    </span>
  );

export const optionalColumns: readonly RunColumn[] = [
  {
    id: "hero",
    title: "Hero",
    width: "minmax(80px, 1fr)",
    cell: ({ hero }) => clipped(hero === null ? null : `${hero.type}/${hero.id}`),
  },
  { id: "tags", title: "Tags", width: "minmax(72px, 1fr)", cell: ({ tags }) => clipped(tags.join(", ")) },
  { id: "step", title: "Step", width: "minmax(80px, 1fr)", cell: (run) => clipped(stepOf(run)) },
  { id: "error", title: "Error", width: "minmax(120px, 2fr)", cell: (run) => clipped(errorText(run)) },
  { id: "key", title: "Key", width: "minmax(80px, 1fr)", cell: ({ idempotencyKey }) => clipped(idempotencyKey) },
  { id: "version", title: "Version", width: "72px", cell: ({ version }) => clipped(version) },
  { id: "queue", title: "Queue", width: "minmax(72px, 1fr)", cell: ({ queue }) => clipped(queue) },
  {
    id: "created",
    title: "Created",
    width: () => ({ relative: "104px", local: "140px", utc: "172px" })[timeStyle.value],
    isNumber: true,
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
  {
    id: "took",
    title: "Took",
    width: "80px",
    isNumber: true,
    cell: ({ startedAt, finishedAt }) => <Took from={startedAt} to={finishedAt} />,
  },
  { id: "id", title: "Id", width: "88px", cell: ({ id }) => <Id id={id} /> },
];

/** The widths of all columns of a row: workflow and status first. */
export const templateOf = (columns: readonly RunColumn[]): string =>
  [
    "minmax(112px, 1fr)",
    "minmax(200px, 4fr)",
    ...columns.map(({ width }) => (typeof width === "string" ? width : width())),
  ].join(" ");

export const defaultColumns: readonly string[] = ["hero", "created", "took", "id"];

function errorText(run: ListedRun): string | null {
  const error = errorOf(run);
  return error === null ? null : `${error.name}: ${error.message}`;
}

/** "in 5 m", or "at 2026-01-31 09:00:00" if the person wants to see instants. */
function writeTime(at: number): string {
  const style = timeStyle.value;
  if (style !== "relative") return `at ${formatInstant(at, style === "utc")}`;
  void secondTick.value;
  return formatRelative(at, databaseNow());
}

/** The status with the line that explains it. */
export function StatusCell({ row: { run, isGone } }: { readonly row: Row }) {
  if (isGone) return <span class={css.explanation}>does not fit the search any more</span>;
  const explanation = explanationOf(run, writeTime);
  return (
    <>
      <Status state={run.status} />
      {explanation === null ? null : (
        <span class={css.explanation} title={escapeHidden(explanation)} data-part="explanation">
          {escapeHidden(explanation)}
        </span>
      )}
    </>
  );
}
