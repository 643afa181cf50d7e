/** Commits: each is one statement, whose answer is translated into a `CommitResult`. */
import { StoreError } from "../../../core/errors/errors.js";
import type { Batch, CommitResult, Message, NewRun, RefusedStart, SeenRun } from "../../contract/store.js";
import type { SqlRow } from "../../sql/dialect.js";
import { taskState } from "../../sql/records.js";
import type { SqlClock } from "../clock.js";
import { type CommitWork, type IsLogEndKnown, messageWork, toCommitWork } from "../commit-work.js";
import type { ExecuteQuery } from "../connection/driver.js";
import { runOfDuplicateEvent } from "../connection/errors.js";
import { isRunId } from "../ids.js";
import type { Tables } from "../tables.js";
import { plainArray } from "./arrays.js";
import { applyKeyChange } from "./key-changes.js";
import { findKeyHolders } from "./key-holders.js";
import { cursorSections, eventsSection, ownEventsSection } from "./log-sections.js";
import { SingleCursorCommit } from "./single-cursor-commit.js";
import { SingleEventCommit } from "./single-event-commit.js";
import { plainSlotsSection, slotsSection } from "./slot-sections.js";
import { childDeadlinesSection, startDeadlinesSection } from "./start-deadline-sections.js";
import {
  childrenSection,
  newChildrenSection,
  newStartsSection,
  similarStartsSection,
  similarWaitingStartsSection,
  startsSection,
} from "./start-sections.js";
import { type Section, StatementBuilder } from "./statement.js";
import {
  changedAndDrainedTasksSection,
  changedTasksSection,
  drainedSection,
  endedSchedulesSection,
  finishesSection,
  keepsSection,
  locksSection,
  messagesSection,
  parksSection,
  plainFinishesSection,
  releasesSection,
  seenSection,
} from "./task-sections.js";

type Conflict = Extract<CommitResult, { kind: "conflict" }>;
const sections: readonly Section[] = [
  keepsSection,
  plainFinishesSection,
  locksSection,
  seenSection,
  eventsSection,
  ownEventsSection,
  drainedSection,
  changedTasksSection,
  changedAndDrainedTasksSection,
  parksSection,
  finishesSection,
  plainSlotsSection,
  slotsSection,
  endedSchedulesSection,
  messagesSection,
  releasesSection,
  similarStartsSection,
  similarWaitingStartsSection,
  newStartsSection,
  newChildrenSection,
  startsSection,
  childrenSection,
  startDeadlinesSection,
  childDeadlinesSection,
  ...cursorSections,
];

/** The maximum number of attempts while other transactions keep changing the rows because of which a commit failed. */
const maxAttempts = 10;

export class Committer {
  readonly #tables: Tables;
  readonly #isLogEndKnown: IsLogEndKnown | undefined;
  readonly #clock: SqlClock;
  readonly #statements: StatementBuilder;
  readonly #singleEventCommit: SingleEventCommit;
  readonly #singleCursorCommit: SingleCursorCommit;

  /** @param isLogEndKnown whether this process has written the log up to this event, and the database still has it */
  constructor(tables: Tables, clock: SqlClock, isLogEndKnown?: IsLogEndKnown) {
    this.#tables = tables;
    this.#isLogEndKnown = isLogEndKnown;
    this.#clock = clock;
    this.#statements = new StatementBuilder(tables, sections, (bind) => clock.now(bind));
    this.#singleEventCommit = new SingleEventCommit(tables, clock);
    this.#singleCursorCommit = new SingleCursorCommit(tables, clock);
  }

  /**
   * Writes the whole batch or nothing. It throws the server's error if an event number is taken (see `conflictOf`), or
   * if an optimistic commit has assumed something wrong.
   */
  async apply(execute: ExecuteQuery, batch: Batch, isOptimistic = false): Promise<CommitResult> {
    assertOwnedStartsAreFenced(batch);
    const invalidTransition = batch.transitions.find(({ runId }) => !isRunId(runId));
    if (invalidTransition !== undefined) return { kind: "conflict", runId: invalidTransition.runId };
    const { keyChange } = batch;
    const conflict =
      keyChange === undefined ? null : await applyKeyChange(execute, keyChange, this.#tables, this.#clock);
    if (conflict !== null) return conflict;
    const work = toCommitWork(batch, isOptimistic, this.#isLogEndKnown);
    const singleWriteQuery = this.#singleEventCommit.query(work) ?? this.#singleCursorCommit.query(work);
    const writtenRow = singleWriteQuery === null ? undefined : (await execute(singleWriteQuery))[0];
    if (writtenRow !== undefined) {
      const ownedWithMessages = writtenRow.has_messages === true ? work.keptRunIds : [];
      return { kind: "committed", at: Number(writtenRow.at), notParked: [], ownedWithMessages, refused: [] };
    }
    const query = this.#statements.build(work, this.#clock.values());
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const row = (await execute(query))[0];
      if (row === undefined) return { kind: "fenced" };
      if (row.is_gate_open === true) return this.#committedResult(execute, batch, work, row);
      const conflict = await this.#findConflict(execute, batch);
      if (conflict !== null) return conflict;
    }
    throw new StoreError("A commit was refused, but no run was found that conflicts; commit again.", {
      transient: true,
    });
  }

  /** Finds the conflict that caused the error. `execute` must not run in the transaction that the error has aborted. */
  async conflictOf(execute: ExecuteQuery, batch: Batch, error: unknown): Promise<CommitResult> {
    const duplicateRunId = runOfDuplicateEvent(error);
    if (duplicateRunId !== null && duplicateRunId !== "") return { kind: "conflict", runId: duplicateRunId };
    const conflict = await this.#findConflict(execute, batch);
    if (conflict === null) throw error;
    return conflict;
  }

  async #committedResult(execute: ExecuteQuery, batch: Batch, work: CommitWork, row: SqlRow): Promise<CommitResult> {
    const at = Number(row.at);
    const notParked = (row.not_parked ?? []) as readonly string[];
    const ownedWithMessages = [row.kept_with_messages, row.drained_with_messages].flatMap(
      (ids) => (ids ?? []) as readonly string[],
    );
    if (work.messagesToNewRuns.length > 0) await this.send(execute, work.messagesToNewRuns);
    const areAllStartsCreated =
      work.areAllRunsNew || work.starts.length === 0 || row.created_starts === work.starts.length;
    const refused = areAllStartsCreated ? [] : await this.#resolveStarts(execute, batch);
    const [refusal] = batch.keyChange === undefined ? [] : refused;
    if (refusal !== undefined) return { kind: "conflict", runId: refusal.existing.id };
    return { kind: "committed", at, notParked, ownedWithMessages, refused };
  }

  /** Creates runs and does nothing else. */
  async start(
    execute: ExecuteQuery,
    starts: readonly NewRun[],
  ): Promise<{ readonly at: number; readonly refused: readonly RefusedStart[] }> {
    const result = await this.apply(execute, { fence: null, transitions: [], starts });
    if (result.kind !== "committed") throw new TypeError("A commit of starts without a fence cannot conflict.");
    return { at: result.at, refused: result.refused };
  }

  /**
   * Finds out why some starts were not written. A start whose own run exists is a repetition and succeeds; a start
   * whose key another run holds is refused. If no run holds the key any more, the start is tried again.
   */
  async #resolveStarts(execute: ExecuteQuery, batch: Batch): Promise<readonly RefusedStart[]> {
    const refusals = new Map<string, RefusedStart>();
    let unresolvedStarts = batch.starts;
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const existingRows = await execute({
        text: `SELECT id FROM ${this.#tables.runs} WHERE id = ANY ($1::uuid[])`,
        values: [plainArray(unresolvedStarts.map(({ id }) => id))],
      });
      const existingIds = new Set(existingRows.map((row) => row.id));
      const missingStarts = unresolvedStarts.filter(({ id }) => !existingIds.has(id));
      for (const refusal of await findKeyHolders(execute, this.#tables, missingStarts))
        refusals.set(refusal.runId, refusal);
      unresolvedStarts = missingStarts.filter(({ id }) => !refusals.has(id));
      if (unresolvedStarts.length === 0) return batch.starts.flatMap(({ id }) => refusals.get(id) ?? []);
      const retryWork = toCommitWork({ fence: batch.fence, transitions: [], starts: unresolvedStarts });
      const [row] = await execute(this.#statements.build(retryWork, this.#clock.values()));
      if (row === undefined) break;
    }
    throw new StoreError("The rest was committed, but a start was neither written nor refused; start it again.", {
      transient: true,
    });
  }

  /** The receivers that are parked and have not started. */
  async findNotStarted(execute: ExecuteQuery, messages: readonly Message[]): Promise<readonly string[]> {
    const { tasks, runs } = this.#tables;
    const text = `SELECT t.run_id FROM ${tasks} t JOIN ${runs} r ON r.id = t.run_id
      WHERE t.run_id = ANY ($1::uuid[]) AND t.state = ${taskState.parked} AND r.started_at IS NULL`;
    const rows = await execute({ text, values: [messages.map(({ to }) => to)] });
    return rows.map(({ run_id }) => run_id as string);
  }

  /**
   * Delivers messages only if their receiver still is as their sender has seen it. `execute` must run in a transaction: the
   * receiver is locked first, so that the second statement sees all that was committed for it before.
   */
  async sendIfUnchanged(
    execute: ExecuteQuery,
    messages: readonly Message[],
    seen: SeenRun,
  ): Promise<ReadonlySet<string>> {
    const ids = plainArray(messages.flatMap(({ to }) => (isRunId(to) ? [to] : [])));
    const text = `SELECT 1 FROM ${this.#tables.tasks} WHERE run_id = ANY ($1::uuid[]) ORDER BY run_id FOR UPDATE`;
    await execute({ text, values: [ids] });
    return this.send(execute, messages, seen);
  }

  /**
   * Delivers messages; returns the runs that received them.
   *
   * @param seen the receiver must be like this; see `sendIfUnchanged`
   */
  async send(
    execute: ExecuteQuery,
    messages: readonly Message[],
    seen: SeenRun | null = null,
  ): Promise<ReadonlySet<string>> {
    const work = messageWork(messages, seen);
    if (work.messages.length === 0) return new Set();
    const [row] = await execute(this.#statements.build(work, this.#clock.values()));
    return new Set(row?.delivered as readonly string[]);
  }

  /** The first run that prevents the batch from being committed, and whether undrained messages are the reason. */
  async #findConflict(execute: ExecuteQuery, { fence, transitions }: Batch): Promise<Conflict | null> {
    const { tasks, events } = this.#tables;
    const isWritable =
      fence === null
        ? `t.state <> ${taskState.owned} AND t.pending_messages = 0`
        : "t.owner = $5::text AND t.epoch = $6::bigint";
    const lastSeqSql = `SELECT e.seq + e.span - 1 FROM ${events} e WHERE e.run_id = u.id ORDER BY e.seq DESC LIMIT 1`;
    const isAppendable = `coalesce(${isWritable}, false) AND NOT (u.appends AND u.after <> coalesce((${lastSeqSql}), 0))`;
    const rows = await execute({
      text: `SELECT x.id, x.is_appendable FROM (
          SELECT u.id, u.n, ${isAppendable} AS is_appendable, t.pending_messages > u.drained AS has_unread
          FROM unnest($1::uuid[], $2::int4[], $3::bool[], $4::int4[]) WITH ORDINALITY u(id, after, appends, drained, n)
          LEFT JOIN ${tasks} t ON t.run_id = u.id
        ) x WHERE NOT x.is_appendable OR x.has_unread ORDER BY x.n LIMIT 1`,
      values: [
        plainArray(transitions.map(({ runId }) => runId)),
        plainArray(transitions.map(({ afterSeq }) => afterSeq)),
        plainArray(transitions.map(({ events: appended }) => appended.length > 0)),
        // Undrained messages prevent only a finish, so other transitions send null.
        plainArray(transitions.map(({ next, drainedInboxIds: ids }) => (next.kind === "finish" ? ids.length : null))),
        ...(fence === null ? [] : [fence.workerId, fence.epoch]),
      ],
    });
    const [conflictRow] = rows;
    if (conflictRow === undefined) return null;
    const conflict = { kind: "conflict", runId: conflictRow.id as string } as const;
    return conflictRow.is_appendable === true ? { ...conflict, hasUnreadMessages: true } : conflict;
  }
}

/** True when the batch sends a message to a child that it creates, or changes keys: both need several statements. */
export function needsTransaction({ transitions, keyChange }: Batch): boolean {
  if (keyChange !== undefined) return true;
  const hasAny = (field: "newChildren" | "messages") => transitions.some((transition) => transition[field].length > 0);
  if (!hasAny("newChildren") || !hasAny("messages")) return false;
  const newRunIds = new Set(transitions.flatMap(({ newChildren }) => newChildren.map(({ id }) => id)));
  return transitions.some((transition) => transition.messages.some(({ to }) => newRunIds.has(to)));
}

function assertOwnedStartsAreFenced({ fence, starts, transitions }: Batch): void {
  if (fence !== null) return;
  const isOwnedStart = ({ due }: NewRun) => due.kind === "owned";
  if (starts.some(isOwnedStart) || transitions.some((transition) => transition.newChildren.some(isOwnedStart))) {
    throw new TypeError("A run can be started as owned only in a commit with a fence.");
  }
}
