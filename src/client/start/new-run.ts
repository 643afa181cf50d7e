/** Makes the row of a new run from its definition, options and input. */

import { encode } from "../../core/encoding/encode.js";
import { InvalidInputError } from "../../core/errors/errors.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { checkName, checkTags } from "../../core/naming/names.js";
import { hasUniqueKey, heroKeyOf } from "../../core/naming/start-key.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import { checkPriority } from "../../define/function/function.js";
import type { HeroRef } from "../../define/hero.js";
import { checkHero } from "../../define/hero.js";
import { newRunClassifier } from "../../define/limited-run.js";
import { parseStartBy } from "../../define/start-by.js";
import type { NewRun } from "../../store/contract/store.js";
import { collectStartTags } from "../../telemetry/call-interception.js";
import { auditField } from "../command/command-options.js";
import type { DebounceOptions } from "./debounce.js";
import type { IdSource } from "./new-id.js";

/**
 * What becomes of a start whose idempotency key or hero another run has. `attach`: that run is returned. `fail`: throws an
 * AlreadyActiveError. `queue`: a new run begins when that run has ended. `cancelOther`: the same, and that run is canceled.
 * `replace`: if that run has not begun, its input, priority, tags and start time are replaced; otherwise it is returned.
 */
export type OnConflict = "attach" | "fail" | "queue" | "cancelOther" | "replace";

/** Options of `pawl.start`, `trigger` and `pawl.build`. */
export interface StartOptions {
  /**
   * A key that starts the workflow once: later starts with it return the first run. Another input with the same key throws
   * an InvalidInputError.
   */
  readonly idempotencyKey?: string;
  /**
   * What becomes of a start whose `idempotencyKey` was used before, or whose hero has an active run. Default: the run that was
   * started with the key is returned, and a hero with an active run throws an AlreadyActiveError.
   */
  readonly onConflict?: OnConflict;
  /** The hero of the run. A second active run of the workflow for the same hero throws an AlreadyActiveError. */
  readonly hero?: HeroRef;
  /** Allows several active runs for one hero. Default: the `allowMultiple` of the workflow class, otherwise false. */
  readonly allowMultiple?: boolean;
  /** Starts the run after this time. Default: at once. Not together with `startAt`. */
  readonly delay?: Duration;
  /** Starts the run at this instant: a Date, or milliseconds since 1970. Not together with `delay`. */
  readonly startAt?: Date | number;
  /**
   * By when the run must begin: a Date, or a duration from its start, or from the time that the start is delayed to. If its
   * code was not executed by then, the run is canceled with the code "EXPIRED". Default: the `startBy` of the workflow.
   */
  readonly startBy?: Duration | Date;
  /** The priority of the run, a whole number: workers claim higher ones first. Default: the priority of the workflow. */
  readonly priority?: number;
  /** Tags in addition to those of the workflow, for `pawl.runs({ tag })`. */
  readonly tags?: readonly string[];
  /** Who starts the run, such as the name of a user. `run.get()` shows it as `startedBy`. */
  readonly by?: string | undefined;
  /** Why the run is started; shown beside `by`. */
  readonly reason?: string | undefined;
  /**
   * Merges this start with others of the same key: the run is due when there was none for `quiet`, and gets the last input.
   * Once the run has begun, the next start creates another.
   */
  readonly debounce?: DebounceOptions;
  /** Your own open transaction (one connection, not a pool): the run is created if and when it commits. */
  readonly tx?: unknown;
}

export const startOptions: ReadonlySet<string> = new Set([
  "idempotencyKey",
  "onConflict",
  "hero",
  "allowMultiple",
  "delay",
  "startAt",
  "startBy",
  "priority",
  "tags",
  "by",
  "reason",
  "debounce",
  "tx",
] satisfies (keyof StartOptions)[]);

/** The options of a call that starts many runs: an idempotency key or a hero belongs to one run. */
export const startManyOptions: ReadonlySet<string> = new Set(
  [...startOptions].filter((option) => !["idempotencyKey", "hero", "onConflict"].includes(option)),
);

export type StartableDefinition = Pick<
  WorkflowDefinition,
  "name" | "version" | "queue" | "priority" | "startByMs" | "tags" | "hero"
> &
  // A client that knows a workflow by its name only does not know its limits.
  Partial<Pick<WorkflowDefinition, "limits" | "fairBy">>;

/** Checks the definition and the options once for all runs of a call, and returns a function that makes a run for an input. */
export function newRunFactory(
  definition: StartableDefinition,
  options: StartOptions,
  ids: IdSource,
): (input: unknown) => NewRun {
  const { name, version } = definition;
  checkOnConflict(options);
  const hero = checkHero(name, definition.hero, options.hero);
  const queue = definition.queue ?? name;
  const priority = checkPriority(options.priority ?? definition.priority);
  const heroType = hero?.type ?? null;
  const heroId = hero?.id ?? null;
  const heroKey =
    hero === null || (options.allowMultiple ?? definition.hero.allowMultiple)
      ? null
      : heroKeyOf(name, hero.type, hero.id);
  const allTags =
    options.tags === undefined ? definition.tags : checkTags([...definition.tags, ...checkTags(options.tags)]);
  const tags = collectStartTags(name, [...allTags]);
  const startKey = options.idempotencyKey === undefined ? null : checkName("idempotency key", options.idempotencyKey);
  const due = dueOf(options);
  const startBy = startByField(definition, options);
  const startedBy = startedByField(options);
  const encodeOptions = { label: `the input of workflow "${name}"` };
  return (input) => ({
    id: ids.next(),
    workflow: name,
    version,
    queue,
    priority,
    input: encode(input, encodeOptions),
    heroType,
    heroId,
    heroKey,
    tags,
    startKey,
    ...startedBy,
    parentId: null,
    parentNode: null,
    parentIndex: null,
    parentAttempt: null,
    due,
    ...startBy,
  });
}

/**
 * Gives the runs of a workflow with limits the class in which they wait, so that no worker has to sort them. Runs that may not
 * become due, or not now, are left to the worker: those with a unique key, a deadline or a later start, and those
 * of a caller's transaction, which would keep the row of the class locked.
 */
export function withRunClass(
  createRun: (input: unknown) => NewRun,
  { limits = [], fairBy = null }: StartableDefinition,
  { tx, onConflict }: StartOptions,
): (input: unknown) => NewRun {
  const classOf = tx === undefined && onConflict === undefined ? newRunClassifier({ limits, fairBy }) : null;
  if (classOf === null) return createRun;
  return (input) => {
    const run = createRun(input);
    const isDueNow = run.due.kind === "now" && run.startBy === undefined && !hasUniqueKey(run);
    const runClass = isDueNow ? classOf(run) : null;
    return runClass === null ? run : Object.assign(run, { runClass });
  };
}

/** Returns the field `startBy` of a new run, or no field if neither the start nor the workflow says by when it must begin. */
function startByField(
  { startByMs }: Pick<StartableDefinition, "startByMs">,
  { startBy }: Pick<StartOptions, "startBy"> = {},
): Pick<NewRun, "startBy"> {
  if (startBy instanceof Date) return { startBy: { kind: "at", ms: parseInstant("startBy", startBy) } };
  const ms = startBy === undefined ? startByMs : parseStartBy(startBy, "startBy");
  return ms === null ? {} : { startBy: { kind: "in", ms } };
}

/** Returns the field `startedBy` of a new run, or no field if the caller has given neither a name nor a reason. */
export function startedByField(options: Pick<StartOptions, "by" | "reason">): Pick<NewRun, "startedBy"> {
  const { audit } = auditField(options);
  return audit === undefined ? {} : { startedBy: JSON.stringify(audit) };
}

const conflictPolicies: ReadonlySet<unknown> = new Set<OnConflict>([
  "attach",
  "fail",
  "queue",
  "cancelOther",
  "replace",
]);

/** @throws InvalidInputError for a policy that does not exist, or that does not go with the other options */
function checkOnConflict({ onConflict, idempotencyKey, hero, tx, delay, startAt }: StartOptions): void {
  if (onConflict === undefined) return;
  if (!conflictPolicies.has(onConflict))
    throw new InvalidInputError(
      `onConflict is "attach", "fail", "queue", "cancelOther" or "replace", not ${JSON.stringify(onConflict)}.`,
    );
  if (idempotencyKey === undefined && hero === undefined)
    throw new InvalidInputError(
      `onConflict: "${onConflict}" needs an \`idempotencyKey\` or a \`hero\`: without one no start conflicts with another.`,
    );
  if (onConflict === "attach" || onConflict === "fail") return;
  if (tx !== undefined)
    throw new InvalidInputError(
      `onConflict: "${onConflict}" cannot be used with \`tx\`, because the other run would have to stand still until your transaction ends; start the run after the transaction.`,
    );
  if (onConflict !== "replace" && (delay !== undefined || startAt !== undefined))
    throw new InvalidInputError(
      `onConflict: "${onConflict}" takes neither \`delay\` nor \`startAt\`: the run begins when the other one has ended.`,
    );
}

function dueOf({ delay, startAt }: StartOptions): NewRun["due"] {
  if (delay !== undefined && startAt !== undefined)
    throw new InvalidInputError("A start takes either `delay` or `startAt`, not both.");
  if (delay !== undefined) return { kind: "in", ms: parseDuration(delay, "delay") };
  if (startAt !== undefined) return { kind: "at", ms: parseInstant("startAt", startAt) };
  return { kind: "now" };
}

export function parseInstant(what: string, value: Date | number): number {
  const ms = Number(value);
  if (Number.isFinite(ms) && Math.abs(ms) <= 8.64e15) return Math.floor(ms);
  const shownValue = typeof value === "string" ? JSON.stringify(value) : String(value);
  throw new InvalidInputError(
    `${what} is not a valid date but ${shownValue}; pass a Date, or a number of milliseconds since 1970.`,
  );
}
