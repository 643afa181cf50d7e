/** All registered workflows: what is open, what needs a person, and whether a worker has them. */
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { href, location, setSearch } from "../../router/router.js";
import { LinkButton } from "../../ui/button.js";
import { escapeHidden, formatCapped, formatCount, formatPercent, plural } from "../../ui/format.js";
import { Icon } from "../../ui/icon.js";
import { Empty, Failure, Loading, Note, PageHeading, Section } from "../../ui/page.js";
import { Sparkline } from "../../ui/sparkline.js";
import { type Column, Table } from "../../ui/table.js";
import { listText } from "../run/graph/box-face.js";
import { runsHref, startPath, workflowPath } from "./workflow-links.js";
import { type Count, jobNameOf, rowsOf, type WorkflowRow } from "./workflow-rows.js";
import css from "./workflows.module.css";

/** A longer list is filtered by name. */
const maxRows = 200;
const minRowsForFilter = 8;

export function WorkflowsScreen() {
  const { data, error } = useQuery<Answer<"listWorkflows">>("v1/workflows");
  const counts = useQuery<Answer<"countRuns">>("v1/counts");
  const workers = useQuery<Answer<"listWorkers">>("v1/workers");
  const figures = useQuery<Answer<"getWorkflowFigures">>("v1/figures/workflows", {}, { minIntervalMs: 5_000 });
  const rows = rowsOf(data?.workflows ?? [], counts.data, workers.data?.workers, figures.data);
  const filter = location.value.search.get("name") ?? "";
  const fitting = rows.filter(({ workflow }) => workflow.name.toLowerCase().includes(filter.toLowerCase()));
  const hours = figures.data === undefined ? 3 : Math.round(hoursOf(figures.data));
  return (
    <>
      <PageHeading
        title="Workflows"
        about="What your workers have registered. Success and the charts are about the last three hours."
      >
        {rows.length < minRowsForFilter && filter === "" ? null : (
          <input
            class={css.filter}
            type="search"
            aria-label="Filter by name"
            placeholder="Filter by name"
            value={filter}
            onInput={(event) => setSearch({ name: event.currentTarget.value }, { replace: true })}
          />
        )}
      </PageHeading>
      {data === undefined ? error === null ? <Loading lines={6} /> : <Failure error={error} /> : null}
      {data !== undefined && rows.length === 0 ? <NoWorkflows /> : null}
      {rows.length > 0 && fitting.length === 0 ? (
        <Empty title="No workflow has such a name" icon="search">
          <a href={href("/workflows")}>Show all {formatCount(rows.length)}</a>
        </Empty>
      ) : null}
      {fitting.length > maxRows ? (
        <div class={css.note}>
          <Note tone="pending">
            The first {maxRows} of {formatCount(fitting.length)} are shown. Filter by name to find the others.
          </Note>
        </div>
      ) : null}
      <Rows title="Workflows" rows={fitting.filter(({ isJob }) => !isJob).slice(0, maxRows)} hours={hours} />
      <Rows title="Jobs of built graphs" rows={fitting.filter(({ isJob }) => isJob).slice(0, maxRows)} hours={hours} />
    </>
  );
}

const hoursOf = ({ from, bucketMs, workflows }: Answer<"getWorkflowFigures">): number => {
  const buckets = workflows[0]?.beganByBucket.length ?? 0;
  return buckets === 0 || from === "" ? 3 : (buckets * bucketMs) / 3_600_000;
};

function NoWorkflows() {
  return (
    <Empty title="No workflow is registered yet" icon="workflows">
      A workflow is listed here once a worker that has it was started: <code>npx pawl worker workflows.ts</code>. To
      begin with an example, run <code>npx pawl init</code>.
    </Empty>
  );
}

function Rows({
  title,
  rows,
  hours,
}: {
  readonly title: string;
  readonly rows: readonly WorkflowRow[];
  readonly hours: number;
}) {
  if (rows.length === 0) return null;
  const isJobs = rows[0]?.isJob === true;
  return (
    <Section title={title} isFlush aside={plural(rows.length, isJobs ? "job" : "workflow")}>
      <Table label={title} columns={columnsFor(hours, isJobs)} rows={rows} keyOf={({ workflow }) => workflow.name} />
    </Section>
  );
}

const columnsFor = (hours: number, isJobs: boolean): readonly Column<WorkflowRow>[] => [
  { title: isJobs ? "Job" : "Workflow", cell: (row) => <Name row={row} /> },
  { title: "Live workers", isMinor: true, cell: (row) => <Workers row={row} /> },
  {
    title: "Open",
    isNumber: true,
    cell: (row) => <CountLink row={row} count={row.open} search={{ active: "true" }} />,
  },
  {
    title: "Paused",
    isNumber: true,
    cell: (row) => <CountLink row={row} count={row.paused} search={{ status: "paused" }} tone="paused" />,
  },
  {
    title: "Failed",
    isNumber: true,
    cell: (row) => <CountLink row={row} count={row.failed} search={{ status: "failed" }} tone="failed" />,
  },
  {
    title: "Success",
    isNumber: true,
    isMinor: true,
    cell: ({ success }) => (success === null ? <span class={css.muted}>–</span> : formatPercent(success)),
  },
  { title: `Begun, last ${hours} h`, isMinor: true, cell: (row) => <Begun row={row} hours={hours} /> },
  ...(isJobs ? [] : [{ title: "Start", isMinor: true, cell: StartLink }]),
];

const StartLink = ({ workflow }: WorkflowRow) => (
  <LinkButton to={href(startPath(workflow.name))} icon="play">
    Start<span class="unseen"> a run of {escapeHidden(workflow.name)}</span>
  </LinkButton>
);

function Name({ row: { workflow, isJob, workers } }: { readonly row: WorkflowRow }) {
  const { name, version, queue, steps } = workflow;
  const facts = [
    isJob ? "" : steps.length === 0 ? "no declared steps" : plural(steps.length, "step"),
    version === "" ? "" : `version ${version}`,
    queue === "default" || queue === name ? "" : `queue ${queue}`,
  ].filter((fact) => fact !== "");
  return (
    <>
      <a class={css.name} href={href(workflowPath(name))}>
        {escapeHidden(jobNameOf(name) ?? name)}
      </a>
      <div class={css.facts}>{escapeHidden(facts.join(" · "))}</div>
      {workers?.length === 0 ? (
        <div class={css.narrow}>
          <NoWorker />
        </div>
      ) : null}
    </>
  );
}

function Workers({ row: { workers } }: { readonly row: WorkflowRow }) {
  if (workers === null) return <span class={css.muted}>…</span>;
  if (workers.length === 0) return <NoWorker />;
  const names = [...new Set(workers)].map(escapeHidden);
  return (
    <span title={names.slice(0, 20).join(", ")}>
      {workers.length === 1 ? names[0] : `${formatCount(workers.length)}: ${listText(names)}`}
    </span>
  );
}

const NoWorker = () => (
  <span class={css.warning}>
    <Icon name="errors" size={14} /> No live worker
  </span>
);

function CountLink({
  row,
  count,
  search,
  tone,
}: {
  readonly row: WorkflowRow;
  readonly count: Count | null;
  readonly search: Readonly<Record<string, string>>;
  readonly tone?: "paused" | "failed";
}) {
  if (count === null) return <span class={css.muted}>…</span>;
  if (count.value === 0) return <span class={css.muted}>{formatCapped(0, count.isCapped)}</span>;
  return (
    <a class={tone === undefined ? "" : css[tone]} href={runsHref({ workflow: row.workflow.name, ...search })}>
      {formatCapped(count.value, count.isCapped)}
    </a>
  );
}

function Begun({ row, hours }: { readonly row: WorkflowRow; readonly hours: number }) {
  if (row.began === 0) return <span class={css.muted}>none</span>;
  return (
    <span class={css.begun}>
      <Sparkline
        values={row.beganByBucket}
        label={`${plural(row.began, "run")} begun in the last ${hours} hours`}
        width={96}
      />
      <span class={css.begunCount}>{formatCount(row.began)}</span>
    </span>
  );
}
