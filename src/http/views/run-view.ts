/** A run in JSON. */
import type { RunInfo, RunStatus } from "../../index.js";
import type { PayloadWriter } from "../payload-writer.js";
import { flag, integer, list, named, nullable, object, oneOf, payload, text, time } from "../schema.js";
import { waitingSchema } from "./waiting-view.js";

export const runStatuses = [
  "pending",
  "running",
  "waiting",
  "paused",
  "completed",
  "failed",
  "canceled",
] as const satisfies RunStatus[];

export const errorSchema = named(
  "RunError",
  payload("An error: `name`, `message`, and `stack`, `code`, `cause` and more where it has them."),
);

export const heroSchema = named(
  "Hero",
  object("What a run is about.", { type: text("The kind of hero."), id: text("The id of the hero.") }),
);

export const runSchema = named(
  "Run",
  object("A run.", {
    id: text("The id of the run."),
    workflow: text("The name of its workflow."),
    version: text('The version of its workflow; "" if it has none.'),
    queue: text("The queue of its workflow."),
    priority: integer("Workers claim runs with a higher priority first.", Number.MIN_SAFE_INTEGER),
    status: oneOf("Its status.", runStatuses),
    hero: nullable(heroSchema),
    input: payload("The input that it was started with."),
    output: payload("Its output; null unless it is completed."),
    error: nullable(errorSchema),
    failedStep: nullable(text("The step that threw the error which failed or paused it.")),
    fingerprint: nullable(text("Identifies errors that are alike.")),
    tags: list("Its tags.", text("A tag.")),
    idempotencyKey: nullable(text("The idempotency key that it was started with.")),
    parentId: nullable(text("The run that started it as a child.")),
    retryOf: nullable(text("The run that it retries.")),
    startsAfter: nullable(text("The run for whose end it had to wait, because that run had its key or hero.")),
    startedBy: nullable(
      object("Who started it and why, if the start said so.", {
        by: nullable(text("Who started it.")),
        reason: nullable(text("Why it was started.", { maxLength: 5_000 })),
      }),
    ),
    schedule: nullable(
      object("The occurrence of a schedule that it was started for.", {
        name: text("The name of the schedule."),
        scheduledFor: time("The instant that the run stands for."),
        firedAt: time("When the run was created."),
        missed: integer("How many earlier occurrences, which did not run, it stands for.", 0),
        manual: flag("Whether it was triggered."),
        backfill: flag("Whether it is part of a backfill."),
      }),
    ),
    gathered: nullable(
      object("The starts that it has gathered, by `debounce` or by the `batch` of its workflow.", {
        by: oneOf("What has gathered them.", ["debounce", "batch"]),
        key: text("The key of these starts."),
        starts: integer("How many starts there were.", 1),
        firstAt: time("When the first of them was made."),
        lastAt: time("When the last of them was made."),
        isOpen: flag("Whether further starts may be added, because no worker has begun the run."),
        position: nullable(integer("If this is one start of a batch: its position, from 0.", 0)),
      }),
    ),
    createdAt: time("When it was created."),
    startedAt: nullable(time("When it started.")),
    finishedAt: nullable(time("When it ended.")),
    pausedAt: nullable(time("When it was paused.")),
    currentStep: nullable(text("The current or next step of a class whose steps are a chain.")),
    waitingFor: list("What it waits for.", waitingSchema),
    pauseReason: nullable(text("Why it is paused.", { maxLength: 50_000 })),
    explanation: nullable(text("Why it is not moving, in one or two sentences.", { maxLength: 50_000 })),
    damaged: list("The fields that could not be read; they are null or empty here.", text("The name of a field.")),
  }),
);

export function runView(run: RunInfo, writer: PayloadWriter): Record<string, unknown> {
  const about = { workflow: run.workflow, runId: run.id };
  const hasDamage = (field: string) => run.damaged.some((damage) => damage.field === field);
  return {
    id: run.id,
    workflow: run.workflow,
    version: run.version,
    queue: run.queue,
    priority: run.priority,
    status: run.status,
    hero: writer.hero(run.hero, about),
    input: hasDamage("input") ? null : writer.value(run.input, { ...about, kind: "input" }),
    output: run.status === "completed" ? writer.value(run.output, { ...about, kind: "output" }) : null,
    error: writer.error(run.error, about),
    failedStep: run.failedStep,
    fingerprint: run.fingerprint,
    tags: writer.tags(run.tags, about),
    idempotencyKey: run.idempotencyKey,
    parentId: run.parentId,
    retryOf: run.retryOf,
    startsAfter: run.startsAfter,
    startedBy:
      run.startedBy === null ? null : { by: run.startedBy.by, reason: writer.text(run.startedBy.reason, about) },
    schedule:
      run.schedule === null
        ? null
        : {
            ...run.schedule,
            scheduledFor: run.schedule.scheduledFor.toISOString(),
            firedAt: run.schedule.firedAt.toISOString(),
          },
    gathered:
      run.gathered === null
        ? null
        : {
            ...run.gathered,
            key: writer.text(run.gathered.key, about),
            firstAt: run.gathered.firstAt.toISOString(),
            lastAt: run.gathered.lastAt.toISOString(),
          },
    createdAt: run.createdAt.toISOString(),
    startedAt: isoOrNull(run.startedAt),
    finishedAt: isoOrNull(run.finishedAt),
    pausedAt: isoOrNull(run.pausedAt),
    currentStep: run.currentStep,
    waitingFor: run.waitingFor,
    pauseReason: writer.text(run.pauseReason, about),
    explanation: writer.text(run.explanation, about),
    damaged: run.damaged.map(({ field }) => field),
  };
}

export const isoOrNull = (date: Date | null): string | null => date?.toISOString() ?? null;
