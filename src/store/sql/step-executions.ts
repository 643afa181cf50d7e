/**
 * The view `pawl_step_executions`: one row per attempt at each step of each run, for queries in SQL. It shows what
 * `executionsOf` computes from the same log, and stores nothing itself.
 *
 * `executionsOf` reads a log from its beginning and remembers earlier events. SQL has window functions instead: for
 * each event they find the number (a column `…_n`) of another event of the same log. A log consists of eras: an era
 * ends when the run starts over (`run.moved`, or `run.reattempted` with a rewind). Attempts that were still planned end
 * with their era, and attempts of the next era continue none of the old ones. The common table expressions build on
 * each other:
 *
 * - `events`, `classified`: the relevant events, unpacked in the way of each database, and the kind of each.
 * - `with_next_of_kind`, `with_next_events`: for each event, the number of the next event that resumed the run
 *   (`resumed_n`), recovered it from a dead worker (`worker_died_n`) or ended the era (`era_end_n`, which also
 *   identifies the era).
 * - `with_first`, `with_execution_no`: consecutive events of one step and era with the same attempt number are one
 *   execution. `first_n` is set on its first event; `execution_no` counts the executions of the step.
 * - `with_ends`, `effective_events`: an execution ends with its first end event (`end_n`), and its later step events
 *   are dropped. Pause events before the end are dropped, too, because a pause blocks only the attempt that the end has
 *   planned. Of several scheduled or started events of an execution, `last_scheduled_n` and `last_started_n` are the
 *   numbers of the last, which overrides the others.
 * - `executions`: the values of each execution, of which the final SELECT keeps the row of the first event. If the end
 *   event has a wait time, one more attempt is planned, unless a pause because of this step blocks it.
 *
 * Order is decided by event numbers, never by instants, because a clock may go back. (The start of an execution is the
 * earliest instant that its events give, because the start of a long execution is recorded late.) The end of a run is
 * not an event: the view reads it from the run's row.
 *
 * `WHERE run_id = …` must not read the logs of other runs. PostgreSQL evaluates the view for one run at a time
 * (LATERAL). The other databases push the condition down to the read of the events, past windows that are partitioned
 * by run_id; SQLite does so only if all windows of a SELECT have the same partition, and never past a GROUP BY. So the
 * view has no GROUP BY.
 *
 * A run may have many thousands of events, and MariaDB recomputes a MIN or MAX over a window for each row. Such windows
 * therefore span one execution, and windows over a whole log use only sums, counts and neighbours.
 */

/** The parts of the view that differ between databases. */
interface StepExecutionsDialect {
  /** The names of the tables as they are written in SQL. */
  readonly tables: { readonly runs: string; readonly events: string };
  /**
   * Selects the relevant events (`isRelevantEvent`, `rewindsIfReattempted`), unpacked, with the columns run_id, n (the
   * event's number), at, type, node, attempt (1 if the event has none), outcome, due_at (`at` plus the wait in the
   * event's data, if any), started_at (`at` minus the duration; NULL for a step that was skipped and never ran),
   * message (of the event's error).
   */
  readonly eventsQuery: string;
  /** "LATERAL" if `eventsQuery` selects the events of the run `r.id`; "" if it selects those of all runs. */
  readonly lateral: "LATERAL" | "";
  /** An expression for the id of an execution. */
  executionId(runId: string, step: string, attempt: string): string;
  /** A column of names, converted so that every client shows it as text. */
  asText(column: string): string;
}

/** A condition on the columns `type` and `node`: the view needs the event. */
export const isRelevantEvent = `(
      (SUBSTR(type, 1, 5) = 'step.' AND node IS NOT NULL)
      OR (type = 'run.paused' AND node IS NOT NULL)
      OR type IN ('run.resumed', 'run.recovered', 'run.moved', 'run.reattempted')
    )`;
/**
 * A condition that excludes reattempts of the run without a rewind, which the view does not need. It is separate from
 * `isRelevantEvent` because `rewinds` reads the event's data.
 */
export const rewindsIfReattempted = (rewinds: string): string => `(type <> 'run.reattempted' OR ${rewinds})`;

export function stepExecutionsQuery({
  tables,
  eventsQuery,
  lateral,
  executionId,
  asText,
}: StepExecutionsDialect): string {
  const instantOfEvent = (n: string) =>
    `(SELECT e.at FROM ${tables.events} e WHERE e.run_id = a.run_id AND e.seq <= ${n} ORDER BY e.seq DESC LIMIT 1)`;
  const scheduledFor = (dueAt: string, resumedN: string) =>
    `CASE WHEN ${resumedN} IS NULL THEN ${dueAt} ELSE ${instantOfEvent(resumedN)} END`;
  return `
SELECT
  ${executionId("a.run_id", "a.step", "(a.attempt + row_type.is_planned)")} AS execution_id,
  a.run_id AS run_id,
  ${asText("r.workflow")} AS workflow,
  ${asText("r.hero_type")} AS hero_type,
  ${asText("r.hero_id")} AS hero_id,
  ${asText("a.step")} AS step,
  a.attempt + row_type.is_planned AS attempt,
  CASE
    WHEN ${isScheduled} AND ${isEraOver} THEN 'canceled'
    WHEN ${isScheduled} THEN 'scheduled'
    WHEN a.state = 'executing' AND r.finished_at IS NOT NULL THEN 'canceled'
    ELSE a.state
  END AS state,
  CASE
    WHEN ${isScheduled} AND ${isEraOver} THEN 'canceled_by_flow_control'
    WHEN ${isScheduled} THEN NULL
    WHEN a.state = 'executing' AND r.finished_at IS NOT NULL THEN 'canceled_by_flow_control'
    WHEN ${wasAbandoned} THEN 'abandoned'
    ELSE ${asText("a.outcome")}
  END AS outcome,
  CASE
    WHEN row_type.is_planned = 1 THEN ${scheduledFor("a.next_due_at", "a.resumed_n")}
    WHEN a.due_at IS NOT NULL THEN a.due_at
    WHEN a.attempt = a.previous_attempt + 1 THEN ${scheduledFor("a.previous_due_at", "a.previous_resumed_n")}
  END AS scheduled_for,
  CASE WHEN row_type.is_planned = 0 THEN a.started_at END AS started_at,
  CASE
    WHEN ${isScheduled} AND a.era_end_n IS NOT NULL THEN ${instantOfEvent("a.era_end_n")}
    WHEN ${isScheduled} OR (a.state = 'executing' AND r.finished_at IS NOT NULL) THEN r.finished_at
    WHEN ${wasAbandoned} THEN ${instantOfEvent("a.worker_died_n")}
    ELSE a.ended_at
  END AS finished_at,
  CASE WHEN row_type.is_planned = 0 THEN a.message END AS error_message,
  CASE
    WHEN row_type.is_planned = 1 THEN ${executionId("a.run_id", "a.step", "a.attempt")}
    WHEN a.previous_attempt IS NOT NULL THEN ${executionId("a.run_id", "a.step", "a.previous_attempt")}
  END AS continues_from
FROM ${tables.runs} r
JOIN ${lateral} (${attemptsQuery(eventsQuery)}) a ON a.run_id = r.id
JOIN (SELECT 0 AS is_planned UNION ALL SELECT 1 AS is_planned) row_type
  ON row_type.is_planned = 0 OR (a.is_continuation_planned = 1 AND CASE WHEN ${isEraOver} THEN a.was_paused ELSE a.is_paused END = 0)`;
}

/** A condition: the attempt has not started. */
const isScheduled = "(row_type.is_planned = 1 OR a.state = 'scheduled')";
/** A condition: the attempt's era is over, or its run has ended. */
const isEraOver = "(a.era_end_n IS NOT NULL OR r.finished_at IS NOT NULL)";
/** A condition: the attempt's worker died, and the log has no end of the attempt. */
const wasAbandoned = "(a.worker_died_n IS NOT NULL AND a.ended_at IS NULL)";

const partitionByStep = "PARTITION BY run_id, era_end_n, node";
const isStartOrEnd = "kind IN ('started', 'ended')";
const isPauseFlag = "CASE kind WHEN 'paused' THEN 1 ELSE 0 END";

/**
 * An expression for the number of the next event of a kind. It adds up, from the end of the log back to the current
 * event, the difference between the number of each event of that kind and the next such number. All numbers cancel out
 * except the nearest.
 */
const nextEventNumber = (kind: string) =>
  `SUM(CASE WHEN kind = '${kind}' THEN n - COALESCE(next_of_kind_n, 0) END) OVER from_here`;

const attemptsQuery = (events: string) => `
  WITH events AS (${events}),
  classified AS (
    SELECT run_id, n, at, type, node, attempt, outcome, due_at, started_at, message,
      CASE type
        WHEN 'step.scheduled' THEN 'scheduled'
        WHEN 'step.started' THEN 'started'
        WHEN 'run.paused' THEN 'paused'
        WHEN 'run.resumed' THEN 'resumed'
        WHEN 'run.recovered' THEN 'worker_died'
        WHEN 'run.moved' THEN 'era_end'
        WHEN 'run.reattempted' THEN 'era_end'
        ELSE 'ended'
      END AS kind
    FROM events
  ),
  with_next_of_kind AS (
    SELECT classified.*, LEAD(n) OVER (PARTITION BY run_id, kind ORDER BY n) AS next_of_kind_n
    FROM classified
  ),
  with_next_events AS (
    SELECT with_next_of_kind.*, ${nextEventNumber("era_end")} AS era_end_n, ${nextEventNumber("resumed")} AS resumed_n, ${nextEventNumber("worker_died")} AS worker_died_n
    FROM with_next_of_kind
    WINDOW from_here AS (PARTITION BY run_id ORDER BY n DESC ROWS UNBOUNDED PRECEDING)
  ),
  with_first AS (
    SELECT with_next_events.*,
      CASE
        WHEN kind = 'paused' OR attempt = LAG(attempt) OVER (${partitionByStep}, ${isPauseFlag} ORDER BY n) THEN NULL
        ELSE n
      END AS first_n
    FROM with_next_events
    WHERE kind IN ('scheduled', 'started', 'ended', 'paused')
  ),
  with_execution_no AS (
    SELECT with_first.*, COUNT(first_n) OVER (${partitionByStep} ORDER BY n ROWS UNBOUNDED PRECEDING) AS execution_no
    FROM with_first
  ),
  with_ends AS (
    SELECT with_execution_no.*,
      MIN(CASE WHEN kind = 'ended' THEN n END) OVER of_execution AS end_n,
      MAX(CASE WHEN kind = 'paused' THEN n END) OVER of_execution AS last_pause_n
    FROM with_execution_no
    WHERE execution_no > 0
    WINDOW of_execution AS (${partitionByStep}, execution_no)
  ),
  effective_events AS (
    SELECT with_ends.*,
      MAX(CASE WHEN kind = 'scheduled' THEN n END) OVER of_execution AS last_scheduled_n,
      MAX(CASE WHEN kind = 'started' THEN n END) OVER of_execution AS last_started_n
    FROM with_ends
    WHERE CASE WHEN n > end_n THEN 1 ELSE 0 END = ${isPauseFlag}
    WINDOW of_execution AS (${partitionByStep}, execution_no)
  ),
  executions AS (
    SELECT run_id, era_end_n, node AS step, first_n, attempt,
      MAX(CASE WHEN n = last_scheduled_n THEN due_at END) OVER of_execution AS due_at,
      MIN(CASE WHEN ${isStartOrEnd} THEN started_at END) OVER of_execution AS started_at,
      MAX(CASE
        WHEN kind = 'started' AND end_n IS NULL AND n = last_started_n
        THEN CASE WHEN worker_died_n IS NULL THEN 'executing' ELSE 'failed' END
        WHEN kind <> 'ended' THEN NULL
        WHEN outcome = 'workflow_paused' THEN 'canceled'
        WHEN outcome IN ('skipped_by_exception', 'timed_out') OR type = 'step.failed' THEN 'failed'
        WHEN type = 'step.skipped' THEN 'skipped'
        WHEN type = 'step.canceled' THEN 'canceled'
        ELSE 'completed'
      END) OVER of_execution AS state,
      MAX(CASE WHEN kind = 'started' AND (n = last_started_n OR worker_died_n < last_started_n) THEN worker_died_n END) OVER of_execution AS worker_died_n,
      MAX(CASE WHEN kind = 'ended' THEN at END) OVER of_execution AS ended_at,
      MAX(CASE WHEN kind = 'ended' THEN outcome END) OVER of_execution AS outcome,
      MAX(CASE WHEN kind = 'ended' THEN message END) OVER of_execution AS message,
      MAX(CASE WHEN kind = 'ended' THEN due_at END) OVER of_execution AS next_due_at,
      MAX(CASE WHEN kind = 'paused' THEN 1 ELSE 0 END) OVER of_execution AS was_paused,
      MAX(CASE WHEN kind = 'paused' AND resumed_n IS NULL THEN 1 ELSE 0 END) OVER of_execution AS is_paused,
      MAX(CASE WHEN kind = 'paused' THEN resumed_n END) OVER of_execution AS resumed_n,
      MAX(CASE WHEN kind = 'paused' AND resumed_n < last_pause_n THEN resumed_n END) OVER of_execution AS resumed_before_pause_n
    FROM effective_events
    WINDOW of_execution AS (${partitionByStep}, execution_no)
  )
  SELECT run_id, era_end_n, step, attempt, due_at, started_at, COALESCE(state, 'scheduled') AS state, worker_died_n, ended_at, outcome,
    message, next_due_at, resumed_n, was_paused, is_paused,
    LAG(attempt) OVER of_step AS previous_attempt,
    LAG(next_due_at) OVER of_step AS previous_due_at,
    CASE
      WHEN LAG(next_due_at) OVER of_step IS NULL THEN NULL
      WHEN LAG(resumed_n) OVER of_step < first_n THEN LAG(resumed_n) OVER of_step
      ELSE LAG(resumed_before_pause_n) OVER of_step
    END AS previous_resumed_n,
    CASE WHEN next_due_at IS NOT NULL AND LEAD(first_n) OVER of_step IS NULL THEN 1 ELSE 0 END AS is_continuation_planned
  FROM executions
  WHERE first_n IS NOT NULL
  WINDOW of_step AS (PARTITION BY run_id, era_end_n, step ORDER BY first_n)
`;
