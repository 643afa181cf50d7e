/** Queues: what waits in them, who takes from them, and whether they are paused. */
import { useState } from "preact/hooks";
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { href } from "../../router/router.js";
import { may } from "../../shell/me.js";
import { Button } from "../../ui/button.js";
import { copyText } from "../../ui/copy.js";
import { escapeHidden, formatCapped, formatCount, plural } from "../../ui/format.js";
import { Icon } from "../../ui/icon.js";
import { Empty, Failure, Loading, Note, PageHeading, Section } from "../../ui/page.js";
import { Status } from "../../ui/status.js";
import { type Column, Table } from "../../ui/table.js";
import { formatDuration, Time } from "../../ui/time.js";
import type { Queue } from "./queue.js";
import { QueueDialog } from "./queue-dialog.js";
import css from "./queues.module.css";

/** Runs are due, and nothing takes them although the queue is not paused. */
const lacksWorker = ({ depth, workers, paused }: Queue) => depth > 0 && workers.length === 0 && paused === null;

/** Queues that need a person come first; the others stay in the order of their names, so that no row jumps. */
const byNeed = (a: Queue, b: Queue) => needOf(b) - needOf(a) || (a.name < b.name ? -1 : 1);
const needOf = (queue: Queue) => (lacksWorker(queue) ? 2 : queue.paused === null ? 0 : 1);

export function QueuesScreen() {
  const { data, error } = useQuery<Answer<"listQueues">>("v1/queues");
  const [asked, setAsked] = useState<Queue | null>(null);
  return (
    <>
      <PageHeading
        title="Queues"
        about="Runs that are due wait in the queue of their workflow until a worker takes them."
      >
        <Button icon="terminal" onClick={() => void copyText("pawl queues", "the command")}>
          Copy as a command
        </Button>
      </PageHeading>
      {data === undefined ? (
        error === null ? (
          <Loading lines={6} />
        ) : (
          <Failure error={error} />
        )
      ) : (
        <Queues queues={data.queues.toSorted(byNeed)} onAsk={setAsked} />
      )}
      {asked === null ? null : <QueueDialog queue={asked} onClose={() => setAsked(null)} />}
    </>
  );
}

function Queues({ queues, onAsk }: { readonly queues: readonly Queue[]; readonly onAsk: (queue: Queue) => void }) {
  if (queues.length === 0)
    return (
      <Empty title="There are no queues yet" icon="queues">
        A queue appears when a workflow is registered for the first time: when a worker starts, or a run is started. Run{" "}
        <code>pawl worker &lt;file&gt;</code> to start a worker.
      </Empty>
    );
  const lacking = queues.filter(lacksWorker);
  return (
    <>
      {lacking.length === 0 ? null : (
        <div class={css.warning}>
          <Note tone="failed" action={<a href={href("/workers")}>See the workers</a>}>
            <strong>No live worker takes from {plural(lacking.length, "queue")} in which runs are due: </strong>
            {lacking.map(({ name }) => escapeHidden(name)).join(", ")}. Start a worker that has the workflows.
          </Note>
        </div>
      )}
      <Section title={plural(queues.length, "queue")} aside={asideOf(queues)} isFlush>
        <div class={css.table}>
          <Table label="Queues" columns={columnsFor(onAsk)} rows={queues} keyOf={({ name }) => name} isStacked />
        </div>
      </Section>
    </>
  );
}

function asideOf(queues: readonly Queue[]) {
  const due = queues.reduce((sum, { depth }) => sum + depth, 0);
  const executing = queues.reduce((sum, queue) => sum + queue.executing, 0);
  const isCapped = queues.some(({ depthCapped }) => depthCapped);
  return `${formatCapped(due, isCapped)} due, ${formatCount(executing)} executing`;
}

const columnsFor = (onAsk: (queue: Queue) => void): readonly Column<Queue>[] => [
  { title: "Queue", cell: (queue) => <NameCell {...queue} /> },
  { title: "Due", isNumber: true, cell: ({ depth, depthCapped }) => <Count value={depth} isCapped={depthCapped} /> },
  {
    title: "Oldest due for",
    isNumber: true,
    cell: ({ oldestAgeMs }) => (oldestAgeMs === null ? <span class={css.none}>–</span> : formatDuration(oldestAgeMs)),
  },
  { title: "Executing", isNumber: true, isMinor: true, cell: ({ executing }) => <Count value={executing} /> },
  { title: "Live workers", isMinor: true, cell: (queue) => <Workers {...queue} /> },
  {
    title: "Action",
    isTitleHidden: true,
    cell: (queue) => (
      <Button
        icon={queue.paused === null ? "pause" : "play"}
        aria-label={`${queue.paused === null ? "Pause" : "Resume"} ${queue.name}`}
        disabled={!may("queues")}
        {...(may("queues") ? {} : { title: "Your access lacks “queues”." })}
        onClick={() => onAsk(queue)}
      >
        {queue.paused === null ? "Pause" : "Resume"}
      </Button>
    ),
  },
];

/** Zeros are faint, so that the numbers that matter stand out. */
function Count({ value, isCapped = false }: { readonly value: number; readonly isCapped?: boolean }) {
  return <span class={value === 0 ? css.none : ""}>{formatCapped(value, isCapped)}</span>;
}

function NameCell(queue: Queue) {
  const { name, paused, workflows } = queue;
  // Unless a workflow names a queue, it has one of its own with the same name.
  const isOwn = workflows.length === 1 && workflows[0] === name;
  return (
    <div class={css.name}>
      <strong>{isOwn ? <WorkflowLink name={name} /> : escapeHidden(name)}</strong>
      {isOwn ? null : workflows.length === 0 ? (
        <span class={css.muted}>no workflow uses it</span>
      ) : (
        <span class={css.muted}>
          {workflows.length === 1 ? "workflow " : "workflows "}
          {workflows.map((workflow, index) => (
            <span key={workflow}>
              {index === 0 ? "" : ", "}
              <WorkflowLink name={workflow} />
            </span>
          ))}
        </span>
      )}
      {lacksWorker(queue) ? (
        <span class={css.lacks}>
          <Icon name="errors" size={12} /> no live worker
        </span>
      ) : null}
      {paused === null ? null : (
        <span class={css.paused}>
          <Status state="paused" />
          <span>
            <Time at={paused.at} />
            {paused.by === null ? "" : ` by ${escapeHidden(paused.by)}`}
            {paused.reason === null ? "" : `: ${escapeHidden(paused.reason)}`}
          </span>
        </span>
      )}
    </div>
  );
}

const WorkflowLink = ({ name }: { readonly name: string }) => (
  <a href={href(`/workflows/${encodeURIComponent(name)}`)}>{escapeHidden(name)}</a>
);

const shownWorkers = 3;

function Workers({ workers }: Queue) {
  if (workers.length === 0) return <span class={css.none}>none</span>;
  const names = workers.slice(0, shownWorkers).map(escapeHidden).join(", ");
  const more = workers.length - shownWorkers;
  return (
    <span title={workers.map(escapeHidden).join(", ")}>
      {names}
      {more > 0 ? ` and ${formatCount(more)} more` : ""}
    </span>
  );
}
