/**
 * The view `pawl_step_executions`: each attempt at each step of each run, for people who ask with SQL. It shows what
 * `executionsOf` tells of the same log, and holds nothing itself.
 *
 * `executionsOf` goes through a log and takes notes. SQL has no notes, it has windows: here every event looks along its
 * log for the number (`…_n`) of the event that matters to it.
 *
 * - `events`, `kinds`: the events that matter, unpacked (each database has its own way), and what each is about.
 * - `likes`, `fates`: when, after this, the run was resumed (`released_n`), was taken over from a dead worker (`lost_n`),
 *   or started over (`closed_n`). Events with the same closed_n are an era: what is still to come ends with it, and what
 *   is done in the next one continues nothing.
 * - `begins`, `drafts`: events of one step, next to each other in an era, with the same attempt number are one execution:
 *   its draft.
 * - `ends`, `picks`: the first end stands, what comes after it does not count; but only after it there is something that
 *   a pause can hold. Where a later event overwrites what an earlier one said, its number is picked.
 * - `executions`: a draft becomes one row, that of its first event. If its end names a wait, another execution is planned,
 *   and a pause because of this very step holds it.
 *
 * To tell what came first numbers are compared, never instants: a clock may go back. (When an execution began is the
 * earlier of what its events say: the start of one that takes long is recorded late.) The end of a run is no event, it comes in last, with
 * the run's row.
 *
 * `WHERE run_id = …` must not read the logs of other runs. PostgreSQL is given one run at a time. The others move the
 * condition to where the events are read, past windows that have run_id in their partitions; SQLite only if all windows
 * of a SELECT have the same partition, and never past a GROUP BY. This is why there is none.
 *
 * A run may have many thousands of events, and MariaDB computes a MIN or MAX over a window anew for each row: those have
 * a draft for their window, and what looks along a whole log is a sum, a count or a neighbour.
 */

/** What the databases write in different ways. */
interface StepExecutionsDialect {
  /** The tables' names, as a statement has them. */
  readonly tables: { readonly runs: string; readonly events: string };
  /**
   * Selects the events that matter (`isTold`, `isKept`), unpacked: run_id, n (its number), at, type, node, attempt (1 if
   * it has none), outcome, due_at (`at` and the wait that its data names, if any), begun_at (`at` less the time it took;
   * NULL for a step that was passed over and never ran), message (of its error).
   */
  readonly eventsQuery: string;
  /** "LATERAL", if `events` selects those of the run `r.id`; "" if it selects all. */
  readonly lateral: "LATERAL" | "";
  /** The id of an execution. */
  executionId(runId: string, step: string, attempt: string): string;
  /** A name's column, so that every client shows it as text. */
  asText(column: string): string;
}

/** Whether the event is one of those that are told here, by the columns `type` and `node`. */
export const isRelevantEvent = `(
      (SUBSTR(type, 1, 5) = 'step.' AND node IS NOT NULL)
      OR (type = 'run.paused' AND node IS NOT NULL)
      OR type IN ('run.resumed', 'run.recovered', 'run.moved', 'run.reattempted')
    )`;
/** A run's reattempt is a new beginning only if it rewinds. Apart from `isTold`, which spares looking into the data. */
export const rewindsIfReattempted = (rewinds: string): string => `(type <> 'run.reattempted' OR ${rewinds})`;

export function stepExecutionsQuery({
  tables,
  eventsQuery,
  lateral,
  executionId,
  asText,
}: StepExecutionsDialect): string {
  const instantOfEvent = (n: string) =>
    `(SELECT e.at FROM ${tables.events} e WHERE e.run_id = d.run_id AND e.seq <= ${n} ORDER BY e.seq DESC LIMIT 1)`;
  const scheduledFor = (dueAt: string, releasedN: string) =>
    `CASE WHEN ${releasedN} IS NULL THEN ${dueAt} ELSE ${instantOfEvent(releasedN)} END`;
  return `
SELECT
  ${executionId("d.run_id", "d.step", "(d.attempt + look.ahead)")} AS execution_id,
  d.run_id AS run_id,
  ${asText("r.workflow")} AS workflow,
  ${asText("r.hero_type")} AS hero_type,
  ${asText("r.hero_id")} AS hero_id,
  ${asText("d.step")} AS step,
  d.attempt + look.ahead AS attempt,
  CASE
    WHEN ${isScheduled} AND ${isEraClosed} THEN 'canceled'
    WHEN ${isScheduled} THEN 'scheduled'
    WHEN d.state = 'executing' AND r.finished_at IS NOT NULL THEN 'canceled'
    ELSE d.state
  END AS state,
  CASE
    WHEN ${isScheduled} AND ${isEraClosed} THEN 'canceled_by_flow_control'
    WHEN ${isScheduled} THEN NULL
    WHEN d.state = 'executing' AND r.finished_at IS NOT NULL THEN 'canceled_by_flow_control'
    WHEN ${wasAbandoned} THEN 'abandoned'
    ELSE ${asText("d.outcome")}
  END AS outcome,
  CASE
    WHEN look.ahead = 1 THEN ${scheduledFor("d.next_due_at", "d.released_n")}
    WHEN d.due_at IS NOT NULL THEN d.due_at
    WHEN d.attempt = d.previous_attempt + 1 THEN ${scheduledFor("d.previous_due_at", "d.previous_released_n")}
  END AS scheduled_for,
  CASE WHEN look.ahead = 0 THEN d.begun_at END AS started_at,
  CASE
    WHEN ${isScheduled} AND d.closed_n IS NOT NULL THEN ${instantOfEvent("d.closed_n")}
    WHEN ${isScheduled} OR (d.state = 'executing' AND r.finished_at IS NOT NULL) THEN r.finished_at
    WHEN ${wasAbandoned} THEN ${instantOfEvent("d.lost_n")}
    ELSE d.ended_at
  END AS finished_at,
  CASE WHEN look.ahead = 0 THEN d.message END AS error_message,
  CASE
    WHEN look.ahead = 1 THEN ${executionId("d.run_id", "d.step", "d.attempt")}
    WHEN d.previous_attempt IS NOT NULL THEN ${executionId("d.run_id", "d.step", "d.previous_attempt")}
  END AS continues_from
FROM ${tables.runs} r
JOIN ${lateral} (${attemptsQuery(eventsQuery)}) d ON d.run_id = r.id
JOIN (SELECT 0 AS ahead UNION ALL SELECT 1 AS ahead) look
  ON look.ahead = 0 OR (d.is_continued = 1 AND CASE WHEN ${isEraClosed} THEN d.was_held ELSE d.is_held END = 0)`;
}

/** It has not begun. */
const isScheduled = "(look.ahead = 1 OR d.state = 'scheduled')";
/** Its era is. */
const isEraClosed = "(d.closed_n IS NOT NULL OR r.finished_at IS NOT NULL)";
/** Its worker died, and nobody has told of its end. */
const wasAbandoned = "(d.lost_n IS NOT NULL AND d.ended_at IS NULL)";

const partitionByStep = "PARTITION BY run_id, closed_n, node";
const isStartOrEnd = "kind IN ('started', 'ended')";
const isPauseFlag = "CASE kind WHEN 'held' THEN 1 ELSE 0 END";

/** The number of the next event of a kind, by the differences between each and the next like it, from the end to here. */
const nextEventNumber = (kind: string) =>
  `SUM(CASE WHEN kind = '${kind}' THEN n - COALESCE(next_like_n, 0) END) OVER from_here`;

const attemptsQuery = (events: string) => `
  WITH events AS (${events}),
  kinds AS (
    SELECT run_id, n, at, type, node, attempt, outcome, due_at, begun_at, message,
      CASE type
        WHEN 'step.scheduled' THEN 'scheduled'
        WHEN 'step.started' THEN 'started'
        WHEN 'run.paused' THEN 'held'
        WHEN 'run.resumed' THEN 'released'
        WHEN 'run.recovered' THEN 'lost'
        WHEN 'run.moved' THEN 'closed'
        WHEN 'run.reattempted' THEN 'closed'
        ELSE 'ended'
      END AS kind
    FROM events
  ),
  likes AS (
    SELECT kinds.*, LEAD(n) OVER (PARTITION BY run_id, kind ORDER BY n) AS next_like_n
    FROM kinds
  ),
  fates AS (
    SELECT likes.*, ${nextEventNumber("closed")} AS closed_n, ${nextEventNumber("released")} AS released_n, ${nextEventNumber("lost")} AS lost_n
    FROM likes
    WINDOW from_here AS (PARTITION BY run_id ORDER BY n DESC ROWS UNBOUNDED PRECEDING)
  ),
  begins AS (
    SELECT fates.*,
      CASE
        WHEN kind = 'held' OR attempt = LAG(attempt) OVER (${partitionByStep}, ${isPauseFlag} ORDER BY n) THEN NULL
        ELSE n
      END AS begin_n
    FROM fates
    WHERE kind IN ('scheduled', 'started', 'ended', 'held')
  ),
  drafts AS (
    SELECT begins.*, COUNT(begin_n) OVER (${partitionByStep} ORDER BY n ROWS UNBOUNDED PRECEDING) AS draft
    FROM begins
  ),
  ends AS (
    SELECT drafts.*,
      MIN(CASE WHEN kind = 'ended' THEN n END) OVER whole AS end_n,
      MAX(CASE WHEN kind = 'held' THEN n END) OVER whole AS hold_n
    FROM drafts
    WHERE draft > 0
    WINDOW whole AS (${partitionByStep}, draft)
  ),
  picks AS (
    SELECT ends.*,
      MAX(CASE WHEN kind = 'scheduled' THEN n END) OVER whole AS scheduled_n,
      MAX(CASE WHEN kind = 'started' THEN n END) OVER whole AS started_n
    FROM ends
    WHERE CASE WHEN n > end_n THEN 1 ELSE 0 END = ${isPauseFlag}
    WINDOW whole AS (${partitionByStep}, draft)
  ),
  executions AS (
    SELECT run_id, closed_n, node AS step, begin_n, attempt,
      MAX(CASE WHEN n = scheduled_n THEN due_at END) OVER whole AS due_at,
      MIN(CASE WHEN ${isStartOrEnd} THEN begun_at END) OVER whole AS begun_at,
      MAX(CASE
        WHEN kind = 'started' AND end_n IS NULL AND n = started_n
        THEN CASE WHEN lost_n IS NULL THEN 'executing' ELSE 'failed' END
        WHEN kind <> 'ended' THEN NULL
        WHEN outcome = 'workflow_paused' THEN 'canceled'
        WHEN outcome IN ('skipped_by_exception', 'timed_out') OR type = 'step.failed' THEN 'failed'
        WHEN type = 'step.skipped' THEN 'skipped'
        WHEN type = 'step.canceled' THEN 'canceled'
        ELSE 'completed'
      END) OVER whole AS state,
      MAX(CASE WHEN kind = 'started' AND (n = started_n OR lost_n < started_n) THEN lost_n END) OVER whole AS lost_n,
      MAX(CASE WHEN kind = 'ended' THEN at END) OVER whole AS ended_at,
      MAX(CASE WHEN kind = 'ended' THEN outcome END) OVER whole AS outcome,
      MAX(CASE WHEN kind = 'ended' THEN message END) OVER whole AS message,
      MAX(CASE WHEN kind = 'ended' THEN due_at END) OVER whole AS next_due_at,
      MAX(CASE WHEN kind = 'held' THEN 1 ELSE 0 END) OVER whole AS was_held,
      MAX(CASE WHEN kind = 'held' AND released_n IS NULL THEN 1 ELSE 0 END) OVER whole AS is_held,
      MAX(CASE WHEN kind = 'held' THEN released_n END) OVER whole AS released_n,
      MAX(CASE WHEN kind = 'held' AND released_n < hold_n THEN released_n END) OVER whole AS released_before_n
    FROM picks
    WINDOW whole AS (${partitionByStep}, draft)
  )
  SELECT run_id, closed_n, step, attempt, due_at, begun_at, COALESCE(state, 'scheduled') AS state, lost_n, ended_at, outcome,
    message, next_due_at, released_n, was_held, is_held,
    LAG(attempt) OVER along AS previous_attempt,
    LAG(next_due_at) OVER along AS previous_due_at,
    CASE
      WHEN LAG(next_due_at) OVER along IS NULL THEN NULL
      WHEN LAG(released_n) OVER along < begin_n THEN LAG(released_n) OVER along
      ELSE LAG(released_before_n) OVER along
    END AS previous_released_n,
    CASE WHEN next_due_at IS NOT NULL AND LEAD(begin_n) OVER along IS NULL THEN 1 ELSE 0 END AS is_continued
  FROM executions
  WHERE begin_n IS NOT NULL
  WINDOW along AS (PARTITION BY run_id, closed_n, step ORDER BY begin_n)
`;
