/** Commits: one statement each, and what its answer means. */
import { StoreError } from "../../../core/errors/errors.js";
import type { Batch, CommitResult, Mail, NewRun, Refusal } from "../../contract/store.js";
import type { SqlRow } from "../../sql/dialect.js";
import { taskState } from "../../sql/records.js";
import type { SqlClock } from "../clock.js";
import type { Run } from "../connection/driver.js";
import { runOfDuplicateEvent } from "../connection/errors.js";
import { isRunId } from "../ids.js";
import type { Tables } from "../tables.js";
import { type KnowsEnd, mailWork, type Work, workOf } from "../work.js";
import { plainArray } from "./arrays.js";
import { cursors, events, ownEvents } from "./log-sections.js";
import { OneCursor } from "./one-cursor.js";
import { OneEvent } from "./one-event.js";
import { holdersOf } from "./refusals.js";
import { children, newChildren, newStarts, starts } from "./start-sections.js";
import { type Section, StatementBuilder } from "./statement.js";
import {
  drained,
  finishes,
  keeps,
  locks,
  mail,
  moved,
  movedAndDrained,
  parks,
  plainEnds,
  releases,
} from "./task-sections.js";

type Conflict = Extract<CommitResult, { kind: "conflict" }>;
const sections: readonly Section[] = [
  keeps,
  plainEnds,
  locks,
  events,
  ownEvents,
  drained,
  moved,
  movedAndDrained,
  parks,
  finishes,
  mail,
  releases,
  newStarts,
  newChildren,
  starts,
  children,
  ...cursors,
];

/** How often something that changes under our eyes is looked at again. */
const looks = 10;

export class Committer {
  readonly #tables: Tables;
  readonly #knowsEnd: KnowsEnd | undefined;
  readonly #clock: SqlClock;
  readonly #statements: StatementBuilder;
  readonly #oneEvent: OneEvent;
  readonly #oneCursor: OneCursor;

  /** @param knowsEnd whether this process has written the log up to there, and the database still has it */
  constructor(tables: Tables, clock: SqlClock, knowsEnd?: KnowsEnd) {
    this.#tables = tables;
    this.#knowsEnd = knowsEnd;
    this.#clock = clock;
    this.#statements = new StatementBuilder(tables, sections, (bind) => clock.now(bind));
    this.#oneEvent = new OneEvent(tables, clock);
    this.#oneCursor = new OneCursor(tables, clock);
  }

  /**
   * Writes all of the batch, or nothing; a number that is taken in a log may also be thrown (`conflictOf`), and so is,
   * when it was `optimistic`, that it was mistaken.
   */
  async apply(run: Run, batch: Batch, optimistic = false): Promise<CommitResult> {
    refuseNonsense(batch);
    const odd = batch.transitions.find(({ runId }) => !isRunId(runId));
    if (odd !== undefined) return { kind: "conflict", runId: odd.runId };
    const work = workOf(batch, optimistic, this.#knowsEnd);
    const alone = this.#oneEvent.query(work) ?? this.#oneCursor.query(work);
    const written = alone === null ? undefined : (await run(alone))[0];
    if (written !== undefined) {
      const mailed = written.mailed === true ? work.keeps : [];
      return { kind: "committed", at: Number(written.at), kept: [], mailed, refused: [] };
    }
    const query = this.#statements.build(work, this.#clock.values());
    for (let look = 1; look <= looks; look += 1) {
      const row = (await run(query))[0];
      if (row === undefined) return { kind: "fenced" };
      if (row.passed === true) return this.#committed(run, batch, work, row);
      const conflict = await this.#offender(run, batch);
      if (conflict !== null) return conflict;
    }
    throw new StoreError("A commit was refused for a reason that was gone whenever it was looked for.", {
      transient: true,
    });
  }

  /** What a thrown error says of the batch; `run` must not be inside the transaction that it ended. */
  async conflictOf(run: Run, batch: Batch, error: unknown): Promise<CommitResult> {
    const named = runOfDuplicateEvent(error);
    if (named !== null && named !== "") return { kind: "conflict", runId: named };
    const conflict = await this.#offender(run, batch);
    if (conflict === null) throw error;
    return conflict;
  }

  async #committed(run: Run, batch: Batch, work: Work, row: SqlRow): Promise<CommitResult> {
    const at = Number(row.at);
    const kept = (row.kept ?? []) as readonly string[];
    const mailed = [row.mailed, row.drained_mailed].flatMap((ids) => (ids ?? []) as readonly string[]);
    if (work.late.length > 0) await this.send(run, work.late);
    const allBorn = work.allNew || work.starts.length === 0 || row.ss === work.starts.length;
    const refused = allBorn ? [] : await this.#settleStarts(run, batch);
    return { kind: "committed", at, kept, mailed, refused };
  }

  /** Makes runs and nothing else. */
  async start(
    run: Run,
    starts: readonly NewRun[],
  ): Promise<{ readonly at: number; readonly refused: readonly Refusal[] }> {
    const result = await this.apply(run, { fence: null, transitions: [], starts });
    if (result.kind !== "committed") throw new TypeError("A start without a fence has nothing to conflict with.");
    return { at: result.at, refused: result.refused };
  }

  /**
   * Some starts were not written. One that exists is fine (it was repeated), one whose key is taken is refused. If nobody
   * has its key any more when we look, it is tried again.
   */
  async #settleStarts(run: Run, batch: Batch): Promise<readonly Refusal[]> {
    const refused = new Map<string, Refusal>();
    let open = batch.starts;
    for (let look = 1; look <= looks; look += 1) {
      const there = await run({
        text: `SELECT id FROM ${this.#tables.runs} WHERE id = ANY ($1::uuid[])`,
        values: [plainArray(open.map(({ id }) => id))],
      });
      const exists = new Set(there.map((row) => row.id));
      const missing = open.filter(({ id }) => !exists.has(id));
      for (const refusal of await holdersOf(run, this.#tables, missing)) refused.set(refusal.runId, refusal);
      open = missing.filter(({ id }) => !refused.has(id));
      if (open.length === 0) return batch.starts.flatMap(({ id }) => refused.get(id) ?? []);
      const again = workOf({ fence: batch.fence, transitions: [], starts: open });
      const [row] = await run(this.#statements.build(again, this.#clock.values()));
      if (row === undefined) break;
    }
    throw new StoreError("The rest was committed, but a start was neither written nor refused; start it again.", {
      transient: true,
    });
  }

  /** Delivers messages; returns who got theirs. */
  async send(run: Run, letters: readonly Mail[]): Promise<ReadonlySet<string>> {
    const work = mailWork(letters);
    if (work.mail.length === 0) return new Set();
    const [row] = await run(this.#statements.build(work, this.#clock.values()));
    return new Set(row?.delivered as readonly string[]);
  }

  /** The first run of the batch that keeps it from being committed, and whether messages are what keeps it. */
  async #offender(run: Run, { fence, transitions }: Batch): Promise<Conflict | null> {
    const { tasks, events } = this.#tables;
    const mine =
      fence === null ? `t.state <> ${taskState.owned} AND t.mail = 0` : "t.owner = $5::text AND t.epoch = $6::bigint";
    const position = `SELECT e.seq + e.span - 1 FROM ${events} e WHERE e.run_id = u.id ORDER BY e.seq DESC LIMIT 1`;
    const fits = `coalesce(${mine}, false) AND NOT (u.appends AND u.after <> coalesce((${position}), 0))`;
    const rows = await run({
      text: `SELECT x.id, x.fits FROM (
          SELECT u.id, u.n, ${fits} AS fits, t.mail > u.drained AS unread
          FROM unnest($1::uuid[], $2::int4[], $3::bool[], $4::int4[]) WITH ORDINALITY u(id, after, appends, drained, n)
          LEFT JOIN ${tasks} t ON t.run_id = u.id
        ) x WHERE NOT x.fits OR x.unread ORDER BY x.n LIMIT 1`,
      values: [
        plainArray(transitions.map(({ runId }) => runId)),
        plainArray(transitions.map(({ after }) => after)),
        plainArray(transitions.map(({ events: appended }) => appended.length > 0)),
        // How much is drained matters where a run ends.
        plainArray(transitions.map(({ next, drained: ids }) => (next.kind === "finish" ? ids.length : null))),
        ...(fence === null ? [] : [fence.workerId, fence.epoch]),
      ],
    });
    const [found] = rows;
    if (found === undefined) return null;
    const conflict = { kind: "conflict", runId: found.id as string } as const;
    return found.fits === true ? { ...conflict, unread: true } : conflict;
  }
}

/** True when the batch cannot be one statement: a child that is born in it gets mail in it. Then it needs an open transaction. */
export function needsTransaction({ transitions }: Batch): boolean {
  const some = (what: "starts" | "mail") => transitions.some((transition) => transition[what].length > 0);
  if (!some("starts") || !some("mail")) return false;
  const born = new Set(transitions.flatMap(({ starts }) => starts.map(({ id }) => id)));
  return transitions.some((transition) => transition.mail.some(({ to }) => born.has(to)));
}

function refuseNonsense({ fence, starts, transitions }: Batch): void {
  if (fence !== null) return;
  const owned = ({ due }: NewRun) => due.kind === "owned";
  if (starts.some(owned) || transitions.some((transition) => transition.starts.some(owned))) {
    throw new TypeError("Only a worker's commit can start a run as its own.");
  }
}
