/** Workers: which are live, silent or gone, what they serve, and how much they have in hand. */
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { databaseNow, secondTick } from "../../shell/me.js";
import { Button } from "../../ui/button.js";
import { copyText } from "../../ui/copy.js";
import { escapeHidden, formatCount, plural } from "../../ui/format.js";
import { Empty, Failure, Loading, Note, PageHeading, Section } from "../../ui/page.js";
import { byName, latestFirst, stateOf, type Worker } from "./worker-states.js";
import { WorkerTable } from "./worker-table.js";
import css from "./workers.module.css";

/** Many workers of many deployments may be gone; the latest are enough. */
const maxGone = 50;
const maxLive = 150;

export function WorkersScreen() {
  const { data, error } = useQuery<Answer<"listWorkers">>("v1/workers");
  return (
    <>
      <PageHeading title="Workers" about="Processes that execute runs. Each sends three heartbeats per lease.">
        <Button icon="terminal" onClick={() => void copyText("pawl workers --all", "the command")}>
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
        <Workers workers={data.workers} />
      )}
    </>
  );
}

function Workers({ workers }: { readonly workers: readonly Worker[] }) {
  // A worker becomes silent without any answer of the server.
  void secondTick.value;
  const now = databaseNow();
  const silent = workers.filter((worker) => stateOf(worker, now) === "silent");
  const live = workers.filter((worker) => stateOf(worker, now) !== "gone").sort(byName);
  const gone = workers.filter((worker) => stateOf(worker, now) === "gone").sort(latestFirst);
  if (workers.length === 0)
    return (
      <Empty title="No worker has used this database yet" icon="workers">
        Runs wait until a worker executes them. Start one with <code>pawl worker &lt;file&gt;</code>, or with{" "}
        <code>pawl.worker(…).start()</code> in your code.
      </Empty>
    );
  return (
    <>
      {live.length === 0 ? (
        <div class={css.warning}>
          <Note tone="failed">
            <strong>No worker is live, so no run is executed.</strong> Start one with{" "}
            <code>pawl worker &lt;file&gt;</code>.
          </Note>
        </div>
      ) : null}
      {silent.length === 0 ? null : (
        <div class={css.warning}>
          <Note tone="paused">
            <strong>{plural(silent.length, "worker is", "workers are")} silent: </strong>
            {silent.map(({ name }) => escapeHidden(name)).join(", ")}. When the lease expires, other workers take the
            runs.
          </Note>
        </div>
      )}
      {live.length === 0 ? null : (
        <Section title={liveTitle(live.length, silent.length)} aside={inHand(live)} isFlush>
          <WorkerTable label="Live workers" workers={live.slice(0, maxLive)} now={now} />
          {live.length > maxLive ? (
            <p class={css.more}>{plural(live.length - maxLive, "more worker")} not shown.</p>
          ) : null}
        </Section>
      )}
      {gone.length === 0 ? null : (
        <Section
          title={`${formatCount(gone.length)} gone`}
          aside={gone.length > maxGone ? `the latest ${maxGone} are shown` : "forgotten a day after the last heartbeat"}
          isFlush
        >
          <WorkerTable label="Workers that are gone" workers={gone.slice(0, maxGone)} now={now} isGone />
        </Section>
      )}
    </>
  );
}

const liveTitle = (live: number, silent: number) =>
  `${formatCount(live)} live${silent === 0 ? "" : `, ${formatCount(silent)} of them silent`}`;

const inHand = (workers: readonly Worker[]) =>
  `${plural(
    workers.reduce((sum, { executing }) => sum + executing, 0),
    "run",
  )} in hand`;
