/** What was asked for is not there, or not possible. */

import { causeOf, nameErrors, PawlError } from "./pawl-error.js";

/** A workflow was started by a name that no worker and no client has registered. */
export class WorkflowNotFoundError extends PawlError {
  readonly code = "WORKFLOW_NOT_FOUND";
  readonly workflow: string;

  constructor(workflow: string) {
    const name = JSON.stringify(workflow);
    super(`Workflow ${name} is not registered; start a worker that has it, or call createWorkflow(${name}) first.`);
    this.workflow = workflow;
  }
}

const runIdPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** There is no run with this id, this idempotency key, or about this hero. */
export class RunNotFoundError extends PawlError {
  readonly code = "RUN_NOT_FOUND";
  /** Empty when it was looked for by a key or a hero. */
  readonly runId: string;

  /** @param which says which run was looked for, when that was not done by its id */
  constructor(runId: string, which?: string) {
    super(
      which !== undefined || runIdPattern.test(runId)
        ? `${which ?? `Run ${runId}`} does not exist; it may have been pruned.`
        : `Run ${runId} does not exist: that is not the id of a run, such as start() and runs() give; by its idempotency key: find(workflow, { idempotencyKey }).`,
    );
    this.runId = runId;
  }
}

/** This hero already has an active run of this workflow, and only one is allowed. */
export class AlreadyActiveError extends PawlError {
  readonly code = "ALREADY_ACTIVE";
  readonly workflow: string;
  readonly hero: { readonly type: string; readonly id: string };
  /** The run that is active. */
  readonly runId: string;

  constructor(details: { workflow: string; hero: { type: string; id: string }; runId: string }) {
    const { workflow, hero, runId } = details;
    super(
      `${hero.type} ${hero.id} already has an active run of workflow ${JSON.stringify(workflow)}: ${runId}. ` +
        "Wait for it, cancel it, or start with allowMultiple.",
    );
    this.workflow = workflow;
    this.hero = hero;
    this.runId = runId;
  }
}

/** The call makes no sense in the state things are in; nothing was changed. */
export class InvalidStateError extends PawlError {
  readonly code = "INVALID_STATE";
  readonly runId: string | undefined;
  readonly status: string | undefined;

  constructor(message: string, details: { runId?: string; status?: string } = {}) {
    super(message);
    this.runId = details.runId;
    this.status = details.status;
  }

  /** @param action what was asked, as in "cannot be paused" */
  static forRun(runId: string, status: string, action: string, nextMove = "Nothing was changed."): InvalidStateError {
    return new InvalidStateError(`Run ${runId} is ${status}, so it cannot be ${action}. ${nextMove}`, {
      runId,
      status,
    });
  }
}

/** One complaint of a Standard Schema (zod, valibot, arktype…). */
export interface InputIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

/** A value given to Pawl is not valid: an input that its schema refuses, a bad name, a duration, an option. */
export class InvalidInputError extends PawlError {
  readonly code = "INVALID_INPUT";
  /** What the schema said, in its own words; empty when no schema was involved. */
  readonly issues: readonly InputIssue[];
  /** Of a start whose idempotency key was used before with another input: the run that has the key. */
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
  const shown = issues.slice(0, ISSUES_SHOWN).map(({ path = [], message }) => {
    const where = path.map((segment) => String(typeof segment === "object" ? segment.key : segment)).join(".");
    return where === "" ? message : `${where}: ${message}`;
  });
  if (issues.length > ISSUES_SHOWN) shown.push(`and ${issues.length - ISSUES_SHOWN} more`);
  return shown.join("; ");
}

nameErrors({ WorkflowNotFoundError, RunNotFoundError, AlreadyActiveError, InvalidStateError, InvalidInputError });
