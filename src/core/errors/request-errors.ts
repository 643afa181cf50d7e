/** Errors for calls that name something that does not exist, or that are not possible now. */

import { causeOf, nameErrors, PawlError } from "./pawl-error.js";

/**
 * The call names a workflow that no worker and no client has ever registered. Start a worker that has the workflow, or call
 * `createWorkflow(name)` first.
 */
export class WorkflowNotFoundError extends PawlError {
  readonly code = "WORKFLOW_NOT_FOUND";
  /** The name that is not registered. */
  readonly workflow: string;

  constructor(workflow: string) {
    const name = JSON.stringify(workflow);
    super(`Workflow ${name} is not registered; start a worker that has it, or call createWorkflow(${name}) first.`);
    this.workflow = workflow;
  }
}

/** There is no schedule of this name. It may have been deleted; otherwise check the name, or put the schedule first. */
export class ScheduleNotFoundError extends PawlError {
  readonly code = "SCHEDULE_NOT_FOUND";
  /** The name that was looked up. */
  readonly schedule: string;

  constructor(schedule: string) {
    super(
      `Schedule ${JSON.stringify(schedule)} does not exist; put it with schedules.put(), or start a worker that declares it.`,
    );
    this.schedule = schedule;
  }
}

const runIdPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** There is no run with this id, idempotency key or hero. The run may have been pruned; otherwise check the id or key. */
export class RunNotFoundError extends PawlError {
  readonly code = "RUN_NOT_FOUND";
  /** The id that was looked up; empty when the run was looked up by an idempotency key or a hero. */
  readonly runId: string;

  /** @param which describes the run for the message, if the run was looked up by something other than its id */
  constructor(runId: string, which?: string) {
    super(
      which !== undefined || runIdPattern.test(runId)
        ? `${which ?? `Run ${runId}`} does not exist; it may have been pruned.`
        : `Run ${runId} does not exist: this is not a run id as start() and runs() return it. To find a run by its idempotency key, call find(workflow, { idempotencyKey }).`,
    );
    this.runId = runId;
  }
}

/**
 * Thrown by `start()` when the hero already has an active run of the workflow, which allows only one active run per hero:
 * wait for that run, cancel it, or start with `allowMultiple` or `onConflict`. Also thrown for an idempotency key that was
 * used before, if the start has `onConflict: "fail"`.
 */
export class AlreadyActiveError extends PawlError {
  readonly code = "ALREADY_ACTIVE";
  /** The name of the workflow. */
  readonly workflow: string;
  /** The hero that already has a run; null if the idempotency key is the reason. */
  readonly hero: {
    /** The type of the hero. */
    readonly type: string;
    /** The id of the hero. */
    readonly id: string;
  } | null;
  /** The idempotency key that was used before; null if the hero is the reason. */
  readonly idempotencyKey: string | null;
  /** The run that is active, or that was started with the key. */
  readonly runId: string;

  constructor(
    details: { workflow: string; runId: string } & (
      | { hero: NonNullable<AlreadyActiveError["hero"]>; idempotencyKey?: null }
      | { hero: null; idempotencyKey: string }
    ),
  ) {
    const { workflow, hero, runId, idempotencyKey = null } = details;
    super(
      hero === null
        ? `Workflow ${JSON.stringify(workflow)} was already started with the idempotency key "${idempotencyKey}": ${runId}.`
        : `${hero.type} ${hero.id} already has an active run of workflow ${JSON.stringify(workflow)}: ${runId}. ` +
            "Wait for it, cancel it, or start with allowMultiple or onConflict.",
    );
    this.workflow = workflow;
    this.hero = hero;
    this.idempotencyKey = idempotencyKey;
    this.runId = runId;
  }
}

/**
 * The call is not possible in the present state, such as `pause()` on a completed run. The call has changed nothing. The
 * message says which calls are possible instead.
 */
export class InvalidStateError extends PawlError {
  readonly code = "INVALID_STATE";
  /** The id of the run that the call was made for; undefined when the call was not about a run. */
  readonly runId: string | undefined;
  /** The status of that run, which does not allow the call. */
  readonly status: string | undefined;

  constructor(message: string, details: { runId?: string; status?: string } = {}) {
    super(message);
    this.runId = details.runId;
    this.status = details.status;
  }

  /** @param action the participle after "cannot be", such as "paused" */
  static forRun(runId: string, status: string, action: string, nextMove = "Nothing was changed."): InvalidStateError {
    return new InvalidStateError(`Run ${runId} is ${status}, so it cannot be ${action}. ${nextMove}`, {
      runId,
      status,
    });
  }
}

/**
 * The run has changed since the caller looked at it, so a command with `ifLastEvent` was refused. The command has changed
 * nothing. Read the run again, and then decide.
 */
export class RunChangedError extends PawlError {
  readonly code = "RUN_CHANGED";
  /** The id of the run. */
  readonly runId: string;
  /** The number of the last event in the log of the run. */
  readonly lastEvent: number;
  /** The number of the event that the caller expected to be the last. */
  readonly expectedLastEvent: number;

  constructor(details: { runId: string; lastEvent: number; expectedLastEvent: number }) {
    const { runId, lastEvent, expectedLastEvent } = details;
    super(
      `Run ${runId} has changed: its log ends with event ${lastEvent}, not with event ${expectedLastEvent}. ` +
        "Nothing was changed; read the run again, and then decide.",
    );
    this.runId = runId;
    this.lastEvent = lastEvent;
    this.expectedLastEvent = expectedLastEvent;
  }
}

/** One issue that a Standard Schema (zod, valibot, arktype …) reports. */
export interface InputIssue {
  /** The schema's description of the problem. */
  readonly message: string;
  /** The keys that lead to the invalid part of the value. */
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

/**
 * An argument is not valid: an input that its schema rejects, a bad name, duration or option. The call has changed nothing.
 * Correct the value that the message names.
 */
export class InvalidInputError extends PawlError {
  readonly code = "INVALID_INPUT";
  /** The issues that the schema reported; empty when no schema was involved. */
  readonly issues: readonly InputIssue[];
  /** The run that has the idempotency key, when the same key was used before with another input. */
  declare readonly runId?: string;

  constructor(message: string, options: ErrorOptions & { issues?: readonly InputIssue[]; runId?: string } = {}) {
    const issues = options.issues ?? [];
    super(issues.length === 0 ? message : `${message}: ${describeIssues(issues)}`, causeOf(options));
    this.issues = issues;
    if (options.runId !== undefined) this.runId = options.runId;
  }
}

const ISSUES_SHOWN = 5;

function describeIssues(issues: readonly InputIssue[]): string {
  const shownIssues = issues.slice(0, ISSUES_SHOWN).map(({ path = [], message }) => {
    const where = path.map((segment) => String(typeof segment === "object" ? segment.key : segment)).join(".");
    return where === "" ? message : `${where}: ${message}`;
  });
  if (issues.length > ISSUES_SHOWN) shownIssues.push(`and ${issues.length - ISSUES_SHOWN} more`);
  return shownIssues.join("; ");
}

nameErrors({
  WorkflowNotFoundError,
  RunNotFoundError,
  ScheduleNotFoundError,
  AlreadyActiveError,
  InvalidStateError,
  RunChangedError,
  InvalidInputError,
});
