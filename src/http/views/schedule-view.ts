/** Schedules and their occurrences in JSON. */
import { outcomes } from "../../core/schedule/schedule-data.js";
import type { OccurrenceInfo, ScheduleInfo } from "../../index.js";
import type { PayloadWriter } from "../payload-writer.js";
import { flag, integer, named, nullable, object, oneOf, payload, text, time } from "../schema.js";
import { isoOrNull, runStatuses } from "./run-view.js";

export const overlapPolicies = ["skip", "bufferOne", "bufferAll", "cancelOther", "allowAll"] as const;
export const catchUpModes = ["latest", "none", "all"] as const;

const outcomeText = (description: string) => oneOf(description, outcomes);

export const scheduleSchema = named(
  "Schedule",
  object("A schedule.", {
    name: text("The name of the schedule."),
    workflow: text("The name of the workflow that it starts."),
    status: oneOf(
      "`retired`: the code of its application does not contain it any more. `ended`: it has no further instants, or has reached `maxRuns`.",
      ["active", "paused", "retired", "ended"],
    ),
    rule: text("The rule in plain language.", { maxLength: 20_000 }),
    cron: nullable(text("The cron expression; null for other rules.")),
    timeZone: text("The time zone of the rule."),
    everyMs: nullable(integer("The time between two occurrences in milliseconds; null for other rules.", 1_000)),
    app: nullable(text("The application whose code declares it; null if it was put by the API.")),
    nextFor: nullable(time("The instant of the next occurrence; null if there is none.")),
    nextAt: nullable(
      time("When the next run starts: `nextFor` with jitter, or the end of a pause; null: not by itself."),
    ),
    lateMs: integer("How late the next occurrence is, in milliseconds; 0 if it is not late.", 0),
    input: payload("The input of its runs; null if `computesInput` is set, or if they have none."),
    computesInput: flag("Whether a function in the code computes the input."),
    overlap: oneOf("What happens while a run of it is open.", overlapPolicies),
    catchUp: object("What runs after downtime.", {
      mode: oneOf("Which occurrences run.", catchUpModes),
      withinMs: nullable(integer("How late an occurrence may be, in milliseconds; null: the mode alone decides.", 0)),
    }),
    jitterMs: integer("The longest delay of a run by jitter, in milliseconds.", 0),
    pauseOnFailure: nullable(integer("After how many failed runs in a row it is paused; null: never.", 1)),
    maxRuns: nullable(integer("After how many runs it ends; null: never.", 1)),
    acceptedRuns: integer("How many of its occurrences were accepted so far, for `maxRuns`.", 0),
    failedInARow: integer("How many of its latest runs have failed, one after another.", 0),
    openRuns: integer("How many of its runs are open.", 0),
    waiting: integer("How many occurrences wait for a run to end, or for a worker that computes their input.", 0),
    backfillWaiting: integer("How many occurrences of backfills wait.", 0),
    last: nullable(
      object("What became of the latest occurrence; null if there was none.", {
        id: text("The id of the occurrence, which is that of its run if it has one."),
        outcome: outcomeText("What became of it."),
        scheduledFor: time("Its instant."),
        at: time("When that was decided."),
      }),
    ),
    pausedAt: nullable(time("When it was paused; null unless it is.")),
    pausedUntil: nullable(time("When the pause ends by itself; null: it does not.")),
    pausedBy: nullable(text("Who has paused it.")),
    pauseReason: nullable(text("Why it is paused.", { maxLength: 50_000 })),
    createdAt: time("When it was first put or declared."),
  }),
);

export function scheduleView(schedule: ScheduleInfo, writer: PayloadWriter): Record<string, unknown> {
  const { name, workflow, last } = schedule;
  const about = { workflow, name };
  return {
    ...schedule,
    nextFor: isoOrNull(schedule.nextFor),
    nextAt: isoOrNull(schedule.nextAt),
    input: schedule.computesInput ? null : writer.value(schedule.input ?? null, { ...about, kind: "input" }),
    last: last === null ? null : { ...last, scheduledFor: last.scheduledFor.toISOString(), at: last.at.toISOString() },
    pausedAt: isoOrNull(schedule.pausedAt),
    pausedUntil: isoOrNull(schedule.pausedUntil),
    pauseReason: writer.text(schedule.pauseReason, about),
    createdAt: schedule.createdAt.toISOString(),
  };
}

export const occurrenceSchema = named(
  "Occurrence",
  object(
    "A row of the ledger of a schedule: an occurrence, or consecutive ones that were skipped for the same reason.",
    {
      id: text("The id; an occurrence that has run has the id of its run."),
      schedule: text("The name of the schedule."),
      scheduledFor: time("The instant; of consecutive skipped occurrences, the first."),
      scheduledUntil: time("The last instant that the row stands for."),
      count: integer("How many occurrences the row stands for.", 1),
      outcome: outcomeText(
        "`buffered`: it waits for the run before it. `requested`: it waits for a worker that computes its input. `skipped_overlap`: a run was open. `skipped_late`: nothing fired it in time. `skipped_buffer_full`: too many were waiting. `paused`, `retired`: the schedule did not fire then. `failed_to_start`: `error` says why.",
      ),
      runId: nullable(text("The id of its run; null if it has none.")),
      runStatus: nullable(oneOf("The status of its run; null if it has none, or if the run was pruned.", runStatuses)),
      at: time("When this was decided."),
      latenessMs: nullable(integer("How late it was decided, in milliseconds; null for skipped occurrences.", 0)),
      missed: integer("How many earlier occurrences, which did not run, the run stands for.", 0),
      manual: flag("Whether it was triggered."),
      backfill: flag("Whether it is part of a backfill."),
      pending: nullable(
        oneOf("Whether its run is open, or it waits; null: nothing is left to do.", ["open", "waiting"]),
      ),
      error: nullable(text("Why it did not start.", { maxLength: 50_000 })),
      by: nullable(text("Who asked for it.")),
      reason: nullable(text("Why it was asked for.", { maxLength: 5_000 })),
    },
  ),
);

export function occurrenceView(occurrence: OccurrenceInfo, writer: PayloadWriter): Record<string, unknown> {
  const { schedule, runId, scheduledFor, scheduledUntil, at, error, reason } = occurrence;
  const about = { name: schedule, ...(runId === null ? {} : { runId }) };
  return {
    ...occurrence,
    scheduledFor: scheduledFor.toISOString(),
    scheduledUntil: scheduledUntil.toISOString(),
    at: at.toISOString(),
    error: writer.text(error, about),
    reason: writer.text(reason, about),
  };
}
