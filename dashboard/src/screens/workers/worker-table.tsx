import { href } from "../../router/router.js";
import { escapeHidden, formatCount, plural } from "../../ui/format.js";
import { Icon, type IconName } from "../../ui/icon.js";
import { type Column, Table } from "../../ui/table.js";
import { formatDuration, Time } from "../../ui/time.js";
import { isSlow, slowLagMs, stateOf, type Worker, type WorkerState } from "./worker-states.js";
import css from "./workers.module.css";

export function WorkerTable({
  label,
  workers,
  now,
  isGone = false,
}: {
  readonly label: string;
  readonly workers: readonly Worker[];
  readonly now: number;
  readonly isGone?: boolean;
}) {
  const load: readonly Column<Worker>[] = [
    {
      title: "Runs in hand",
      isNumber: true,
      cell: ({ executing }) => <span class={executing === 0 ? css.faint : ""}>{formatCount(executing)}</span>,
    },
    { title: "Loop lag", isNumber: true, cell: (worker) => <Lag {...worker} /> },
  ];
  const columns: readonly Column<Worker>[] = [
    { title: "Worker", cell: (worker) => <WorkerCell worker={worker} state={stateOf(worker, now)} /> },
    ...(isGone ? [] : load),
    { title: "Last heartbeat", isMinor: true, cell: ({ heartbeatAt }) => <Time at={heartbeatAt} /> },
    { title: "Started", isMinor: true, cell: ({ startedAt }) => <Time at={startedAt} /> },
    { title: "Serves", isMinor: true, cell: (worker) => <Serves {...worker} /> },
  ];
  return (
    <div class={css.table}>
      <Table label={label} columns={columns} rows={workers} keyOf={({ id }) => id} isStacked />
    </div>
  );
}

const looks: Readonly<Record<WorkerState, { readonly icon: IconName; readonly tone: string }>> = {
  live: { icon: "check", tone: css.live ?? "" },
  silent: { icon: "clock", tone: css.silent ?? "" },
  gone: { icon: "slash", tone: css.gone ?? "" },
};

function WorkerCell({ worker, state }: { readonly worker: Worker; readonly state: WorkerState }) {
  const { name, host, port, pid, id } = worker;
  const { icon, tone } = looks[state];
  return (
    <div class={css.worker}>
      <span class={css.title} title={`Worker ${id}`}>
        <strong>{escapeHidden(name)}</strong>
        <span class={`${css.state} ${tone}`} data-state={state}>
          <Icon name={icon} size={12} />
          {state}
        </span>
      </span>
      <span class={`${css.place} mono`}>
        <span>
          {escapeHidden(host)}
          {port === null ? "" : `:${port}`}
        </span>
        <span>pid {pid}</span>
      </span>
    </div>
  );
}

/** How long the event loop was blocked at the longest between the last two heartbeats. */
function Lag(worker: Worker) {
  const { loopLagMs } = worker;
  if (loopLagMs === null)
    return (
      <span class={css.faint} title="Not reported yet; it comes with the next heartbeat.">
        –
      </span>
    );
  const about = "How long the event loop of its process was blocked at the longest between its last two heartbeats.";
  if (!isSlow(worker)) return <span title={about}>{formatDuration(loopLagMs)}</span>;
  return (
    <span
      class={css.slow}
      title={`${about} From ${slowLagMs} ms on, its runs, heartbeats and requests wait noticeably: a step computes for long without awaiting.`}
    >
      <Icon name="errors" size={12} /> slow {formatDuration(loopLagMs)}
    </span>
  );
}

const shownNames = 6;

function Serves({ workflows, jobs, graphs }: Worker) {
  const hidden = workflows.length - shownNames;
  if (workflows.length === 0 && jobs.length === 0)
    return <span class={css.faint}>{graphs ? "graphs" : "nothing"}</span>;
  return (
    <span class={css.serves}>
      {workflows.slice(0, shownNames).map(({ name, version }) => (
        <a key={`${name} ${version}`} href={href(`/workflows/${encodeURIComponent(name)}`)}>
          {escapeHidden(name)}
          {version === "" ? "" : ` ${escapeHidden(version)}`}
        </a>
      ))}
      {hidden > 0 ? (
        <span
          title={workflows
            .slice(shownNames)
            .map(({ name }) => escapeHidden(name))
            .join(", ")}
        >
          and {formatCount(hidden)} more
        </span>
      ) : null}
      {jobs.length > 0 ? (
        <span title={jobs.map(escapeHidden).join(", ")}>
          {jobs.length <= 3 ? `jobs ${jobs.map(escapeHidden).join(", ")}` : plural(jobs.length, "job")}
        </span>
      ) : null}
      {graphs ? <span>graphs</span> : null}
    </span>
  );
}
