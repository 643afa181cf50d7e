import { href, navigate, runHref } from "../../router/router.js";
import { databaseNow } from "../../shell/me.js";
import { Bar } from "../../ui/bar.js";
import { copyText, Id } from "../../ui/copy.js";
import { escapeHidden, formatCount } from "../../ui/format.js";
import { Menu } from "../../ui/menu.js";
import { Status } from "../../ui/status.js";
import { type Column, Table } from "../../ui/table.js";
import { Time } from "../../ui/time.js";
import { type ErrorGroup, keyOf, searchOf, trendOf } from "./error-groups.js";
import css from "./errors.module.css";

const runsPath = (group: ErrorGroup) => `/runs?q=${encodeURIComponent(searchOf(group))}`;

/** The step that failed is selected on the page of the run. */
const latestRunSearch = ({ step }: ErrorGroup): Record<string, string> => (step === null ? {} : { step });

const columns: readonly Column<ErrorGroup>[] = [
  { title: "Error", cell: (group) => <ErrorCell {...group} /> },
  {
    title: "Runs",
    isNumber: true,
    cell: (group) => <a href={href(runsPath(group))}>{formatCount(group.count)}</a>,
  },
  { title: "Last 24 h", isNumber: true, isMinor: true, cell: (group) => <Trend {...group} /> },
  { title: "First seen", isMinor: true, cell: ({ firstRunAt }) => <Time at={firstRunAt} /> },
  { title: "Last seen", isMinor: true, cell: ({ lastRunAt }) => <Time at={lastRunAt} /> },
  { title: "Actions", isTitleHidden: true, cell: (group) => <GroupMenu {...group} /> },
];

export function ErrorTable({ groups }: { readonly groups: readonly ErrorGroup[] }) {
  return (
    <div class={css.table}>
      <Table label="Errors" columns={columns} rows={groups} keyOf={keyOf} isStacked />
    </div>
  );
}

function ErrorCell(group: ErrorGroup) {
  const { name, message, workflow, step, status, latestRunId } = group;
  return (
    <div class={css.error}>
      <a class={css.message} href={href(runsPath(group))} title={escapeHidden(message ?? "")}>
        <strong>{escapeHidden(name)}</strong>{" "}
        {message === null ? <em>The message is hidden from you.</em> : escapeHidden(message)}
      </a>
      <div class={css.where}>
        <Status state={status} isSmall />
        <span>
          in <a href={href(`/workflows/${encodeURIComponent(workflow)}`)}>{escapeHidden(workflow)}</a>
          {step === null ? ", outside of steps" : <> at step {escapeHidden(step)}</>}
        </span>
        <span>
          latest run <Id id={latestRunId} to={runHref(latestRunId, latestRunSearch(group))} />
        </span>
      </div>
    </div>
  );
}

function Trend(group: ErrorGroup) {
  const { count, lastDayCount, status } = group;
  return (
    <div class={css.trend}>
      <span>
        <span class={css.words}>{trendOf(group, databaseNow())}</span> {formatCount(lastDayCount)}
      </span>
      <Bar share={count === 0 ? 0 : lastDayCount / count} tone={status} />
    </div>
  );
}

function GroupMenu(group: ErrorGroup) {
  const { fingerprint, workflow, status, name, latestRunId } = group;
  const latest = new URLSearchParams(latestRunSearch(group)).toString();
  return (
    <Menu
      label={`Actions for ${name} in ${workflow}`}
      items={[
        { label: "Show the runs", icon: "runs", run: () => navigate(runsPath(group)) },
        {
          label: "Open the latest run",
          icon: "right",
          run: () => navigate(`/runs/${latestRunId}${latest === "" ? "" : `?${latest}`}`),
        },
        {
          label: "Copy as a command",
          icon: "terminal",
          run: () => void copyText(`pawl runs --fingerprint ${fingerprint} --status ${status}`, "the command"),
        },
        { label: "Copy the fingerprint", icon: "copy", run: () => void copyText(fingerprint, "the fingerprint") },
      ]}
    />
  );
}
