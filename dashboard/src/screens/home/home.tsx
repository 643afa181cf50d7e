/** The start page: what needs a person, what happened lately, and what happens next. */
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { databaseNow } from "../../shell/me.js";
import { Failure, PageHeading } from "../../ui/page.js";
import { formatDuration } from "../../ui/time.js";
import { Activity } from "./activity.js";
import { Attention } from "./attention.js";
import { concernsOf } from "./concerns.js";
import { FirstSteps } from "./first-steps.js";
import css from "./home.module.css";
import { QueueList } from "./queue-list.js";
import { StatusTiles } from "./status-tiles.js";
import { UpNext } from "./up-next.js";

/** Of more schedules, Home looks at the first; Schedules has pages. */
const mostSchedules = 1_000;

export function HomeScreen() {
  const counts = useQuery<Answer<"countRuns">>("v1/counts");
  const errors = useQuery<Answer<"listErrors">>("v1/errors", {}, { minIntervalMs: 2_000 });
  const queues = useQuery<Answer<"listQueues">>("v1/queues", {}, { minIntervalMs: 2_000 });
  const workers = useQuery<Answer<"listWorkers">>("v1/workers", {}, { minIntervalMs: 2_000 });
  const schedules = useQuery<Answer<"listSchedules">>(
    "v1/schedules",
    { limit: mostSchedules, maxPayload: 0 },
    { minIntervalMs: 5_000 },
  );
  const newest = useQuery<Answer<"listRuns">>("v1/runs", { limit: 1, maxPayload: 0 });
  const failure = [counts, errors, queues, workers, schedules].find(
    ({ data, error }) => data === undefined && error !== null,
  );
  if (failure?.error != null)
    return (
      <>
        <PageHeading title="Home" />
        <Failure error={failure.error} />
      </>
    );
  const groups =
    counts.data === undefined ||
    errors.data === undefined ||
    queues.data === undefined ||
    workers.data === undefined ||
    schedules.data === undefined
      ? null
      : concernsOf({
          counts: counts.data,
          errors: errors.data,
          queues: queues.data.queues,
          workers: workers.data.workers,
          schedules: schedules.data.schedules,
          now: databaseNow(),
          writeSpan: formatDuration,
        });
  const isEmpty = newest.data?.runs.length === 0;
  return (
    <>
      <PageHeading title="Home" />
      <div class={css.page}>
        {isEmpty ? (
          <FirstSteps />
        ) : (
          <div class={css.columns}>
            <div class={css.main}>
              <Attention groups={groups} />
              <StatusTiles counts={counts.data} />
              <Activity />
            </div>
            <div class={css.side}>
              <QueueList queues={queues.data?.queues} />
              <UpNext />
            </div>
          </div>
        )}
      </div>
    </>
  );
}
