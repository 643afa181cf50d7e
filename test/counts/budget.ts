/**
 * The budgets of all measured operations. The numbers are those measured when the budget was last changed: a change that
 * makes Pawl cheaper lowers them here (the tests say by how much), and a change that must make an operation more
 * expensive raises them here, where a reviewer sees it.
 *
 * - calls: the calls of the engine to the store, by method. The same on every store, and all that is counted in memory.
 * - rows: the rows that are written, by table. The same on every store, except for the additions in the line of a store.
 * - statements: what the driver sends, including BEGIN and COMMIT. SQLite is only a function call away, so its statements
 *   are small; PostgreSQL combines them into one; MariaDB takes several in one packet, and the packets determine how long
 *   it waits. (MySQL takes the statements of a transaction one by one.)
 * - bytes: of the rows that are inserted and updated, their columns as text. MySQL has one column more in its tasks.
 *
 * All budgets are exact, except for the last two, which are bounds.
 */
import type { StoreKind } from "../support/databases.js";
import type { batches } from "./batches.js";
import type { concurrentRuns } from "./concurrent-runs.js";
import type { Cost } from "./gate.js";
import type { operations } from "./operations.js";

interface Budget {
  readonly calls: Cost;
  readonly rows: Cost;
  readonly postgres: Cost;
  readonly sqlite: Cost;
  readonly mysql: Cost;
}

export type OperationName = keyof typeof operations | keyof typeof batches | keyof typeof concurrentRuns;

const budgets: Record<OperationName, Budget> = {
  // ── One run, alone (operations.ts) ────────────────────────────────────────────────────────────────────────────────────

  // PostgreSQL: the second statement notifies other processes.
  start: {
    calls: { commit: 1 },
    rows: { "runs inserted": 1, "tasks inserted": 1 },
    postgres: { statements: 2, bytes: 168 },
    sqlite: { statements: 4, bytes: 168 },
    mysql: { statements: 6, packets: 2, bytes: 169 },
  },
  // No other process is notified, but the worker's fence is checked. Its task has an owner instead of a due time: 24
  // bytes more.
  "start with a local worker": {
    calls: { commit: 1 },
    rows: { "runs inserted": 1, "tasks inserted": 1 },
    postgres: { statements: 1, bytes: 192 },
    sqlite: { statements: 5, bytes: 192 },
    mysql: { statements: 7, packets: 2, bytes: 193 },
  },
  // The claim of a new run returns everything that is needed to start it, so no log is read.
  claim: {
    calls: { claim: 1 },
    rows: { "tasks updated": 1 },
    postgres: { statements: 1, bytes: 103 },
    sqlite: { statements: 9, bytes: 103 },
    mysql: { statements: 7, packets: 3, bytes: 104 },
  },
  // The cost of every poll: one read without a transaction.
  "empty claim": {
    calls: { claim: 1 },
    rows: {},
    postgres: { statements: 1, bytes: 0 },
    sqlite: { statements: 1, bytes: 0 },
    mysql: { statements: 1, packets: 1, bytes: 0 },
  },
  // The most frequent operation: one row, and on the servers one statement that is its own transaction.
  step: {
    calls: { commit: 1 },
    rows: { "events inserted": 1 },
    postgres: { statements: 1, bytes: 103 },
    sqlite: { statements: 4, bytes: 103 },
    mysql: { statements: 1, packets: 1, bytes: 103 },
  },
  // Steps that complete together share a row.
  "100 steps at once": {
    calls: { commit: 1 },
    rows: { "events inserted": 1 },
    postgres: { statements: 1, bytes: 7_559 },
    sqlite: { statements: 4, bytes: 7_559 },
    mysql: { statements: 1, packets: 1, bytes: 7_559 },
  },
  // Before the step is recorded, the transaction is checked to still be the one that was begun: one statement (on MySQL
  // two, a savepoint created at the start and released at the end, in packets that are sent anyway). SQLite's worker
  // cannot send heartbeats while another connection holds the write lock, so the transaction does it. MySQL resets the
  // connection that user code had: its last three statements, for which no caller waits.
  "transactional step": {
    calls: { beginTransaction: 1, "commit of a transaction": 1 },
    rows: { "events inserted": 1 },
    postgres: { statements: 4, bytes: 102 },
    sqlite: { statements: 6, bytes: 222, "workers updated": 1 },
    mysql: { statements: 11, packets: 6, bytes: 102 },
  },
  // One row is overwritten, so the log does not grow. The fence and the owner are checked as for any commit; MySQL does
  // that in a packet of its own.
  checkpoint: {
    calls: { commit: 1 },
    rows: { "cursors updated": 1 },
    postgres: { statements: 1, bytes: 122 },
    sqlite: { statements: 5, bytes: 122 },
    mysql: { statements: 6, packets: 2, bytes: 122 },
  },
  // The end of a run is recorded in its row, without an event. One byte is the number of events in its log, by which
  // `verify()` finds a log whose end is missing.
  finish: {
    calls: { commit: 1 },
    rows: { "runs updated": 1, "tasks deleted": 1 },
    postgres: { statements: 2, bytes: 137 },
    sqlite: { statements: 7, bytes: 137 },
    mysql: { statements: 7, packets: 2, bytes: 137 },
  },
  "ask for a result": {
    calls: { runsById: 1 },
    rows: {},
    postgres: { statements: 1, bytes: 0 },
    sqlite: { statements: 1, bytes: 0 },
    mysql: { statements: 1, packets: 1, bytes: 0 },
  },
  // 8 bytes of a park are the number of events in its `waiting` column, by which `verify` finds that the end of a log
  // is missing. The same holds for every park below.
  "fall asleep": {
    calls: { commit: 1 },
    rows: { "runs updated": 1, "tasks updated": 1, "events inserted": 1 },
    postgres: { statements: 1, bytes: 333 },
    sqlite: { statements: 6, bytes: 333 },
    mysql: { statements: 8, packets: 2, bytes: 334 },
  },
  // A claim, a read of the log, and the event that the timer fired.
  "wake up": {
    calls: { claim: 1, logs: 1, commit: 1 },
    rows: { "tasks updated": 1, "events inserted": 1 },
    postgres: { statements: 3, bytes: 168 },
    sqlite: { statements: 14, bytes: 168 },
    mysql: { statements: 9, packets: 5, bytes: 169 },
  },
  "wait for a signal": {
    calls: { commit: 1 },
    rows: { "runs updated": 1, "tasks updated": 1, "events inserted": 1 },
    postgres: { statements: 1, bytes: 348 },
    sqlite: { statements: 6, bytes: 348 },
    mysql: { statements: 8, packets: 2, bytes: 349 },
  },
  // The sender reads and decides; then a claim, and another read of the log for the code. The task is read twice: first
  // to learn whether a worker owns the run, whose log may be long, and again after the log, so that both belong to one
  // state.
  signal: {
    calls: { run: 1, tasks: 2, logs: 2, now: 1, commit: 1, claim: 1 },
    rows: { "runs updated": 1, "tasks updated": 2, "events inserted": 1 },
    postgres: { statements: 9, bytes: 523 },
    sqlite: { statements: 19, bytes: 523 },
    mysql: { statements: 20, packets: 11, bytes: 525 },
  },
  // The claim finds nothing: a hint about a message does not say whether the receiver was parked.
  "signal to a busy run": {
    calls: { run: 1, tasks: 1, send: 1, inbox: 1, claim: 1, now: 1, commit: 1 },
    rows: { "tasks updated": 2, "events inserted": 1, "inbox inserted": 1, "inbox deleted": 1 },
    postgres: { statements: 8, bytes: 380 },
    sqlite: { statements: 14, bytes: 380 },
    mysql: { statements: 20, packets: 9, bytes: 382 },
  },
  child: {
    calls: { commit: 3, claim: 2, logs: 1, inbox: 1 },
    rows: {
      "runs inserted": 1,
      "runs updated": 2,
      "tasks inserted": 1,
      "tasks updated": 5,
      "tasks deleted": 1,
      "events inserted": 3,
      "inbox inserted": 1,
      "inbox deleted": 1,
    },
    postgres: { statements: 9, bytes: 9_548 },
    sqlite: { statements: 49, bytes: 9_548 },
    mysql: { statements: 46, packets: 14, bytes: 9_554 },
  },
  // The child was created before, with the others: what remains is to release, claim and finish it, and to notify its
  // parent.
  "child of a map": {
    calls: { commit: 3, claim: 2, logs: 1, inbox: 1 },
    rows: {
      "runs updated": 2,
      "tasks updated": 6,
      "tasks deleted": 1,
      "events inserted": 3,
      "inbox inserted": 1,
      "inbox deleted": 1,
    },
    postgres: { statements: 9, bytes: 9_270 },
    sqlite: { statements: 48, bytes: 9_270 },
    mysql: { statements: 44, packets: 14, bytes: 9_276 },
  },
  // This includes parking the parent.
  "100 new children of a map": {
    calls: { commit: 2 },
    rows: { "runs inserted": 100, "runs updated": 1, "tasks inserted": 100, "tasks updated": 1, "events inserted": 1 },
    postgres: { statements: 3, bytes: 28_436 },
    sqlite: { statements: 210, bytes: 28_436 },
    mysql: { statements: 16, packets: 4, bytes: 28_537 },
  },

  // ── A hundred runs in one commit (batches.ts) ──────────────────────────────────────────────────────────────────────

  "100 starts in one commit": {
    calls: { commit: 1 },
    rows: { "runs inserted": 100, "tasks inserted": 100 },
    postgres: { statements: 2, bytes: 16_000 },
    sqlite: { statements: 202, bytes: 16_000 },
    mysql: { statements: 6, packets: 2, bytes: 16_100 },
  },
  "100 claims at once": {
    calls: { claim: 1 },
    rows: { "tasks updated": 100 },
    postgres: { statements: 1, bytes: 10_300 },
    sqlite: { statements: 206, bytes: 10_300 },
    mysql: { statements: 7, packets: 3, bytes: 10_400 },
  },
  "100 steps in one commit": {
    calls: { commit: 1 },
    rows: { "events inserted": 100 },
    postgres: { statements: 1, bytes: 10_800 },
    sqlite: { statements: 103, bytes: 10_800 },
    mysql: { statements: 6, packets: 2, bytes: 10_800 },
  },
  "100 checkpoints in one commit": {
    calls: { commit: 1 },
    rows: { "cursors inserted": 100 },
    postgres: { statements: 1, bytes: 8_000 },
    sqlite: { statements: 203, bytes: 8_000 },
    mysql: { statements: 6, packets: 2, bytes: 8_000 },
  },
  "100 parks in one commit": {
    calls: { commit: 1 },
    rows: { "runs updated": 100, "tasks updated": 100, "events inserted": 100 },
    postgres: { statements: 1, bytes: 27_200 },
    sqlite: { statements: 303, bytes: 27_200 },
    mysql: { statements: 8, packets: 2, bytes: 27_300 },
  },
  "100 finishes in one commit": {
    calls: { commit: 1 },
    rows: { "runs updated": 100, "tasks deleted": 100 },
    postgres: { statements: 2, bytes: 13_400 },
    sqlite: { statements: 403, bytes: 13_400 },
    mysql: { statements: 7, packets: 2, bytes: 13_400 },
  },
  "100 messages at once": {
    calls: { send: 1 },
    rows: { "tasks updated": 100, "inbox inserted": 100 },
    postgres: { statements: 2, bytes: 16_000 },
    sqlite: { statements: 202, bytes: 16_000 },
    mysql: { statements: 6, packets: 2, bytes: 16_100 },
  },

  // ── A hundred concurrent runs (concurrent-runs.ts) ─────────────────────────────────────────────────────────────────

  // Rows and bytes are exact however runs share commits. 23 to 28 commits were observed, also on a busy machine;
  // acknowledgements are delivered in groups of at least 32, so that the hundred cannot split into more than a few
  // groups of a commit each.
  "100 runs of 10 steps": {
    calls: { commit: 80 },
    rows: {
      "runs inserted": 100,
      "runs updated": 100,
      "tasks inserted": 100,
      "tasks deleted": 100,
      "events inserted": 1_000,
    },
    // One statement per commit, and a second for commits that end runs, to notify.
    postgres: { statements: 100, bytes: 138_100 },
    // One for a step, two for a start, four for an end, and three for each commit.
    sqlite: { statements: 1_600 + 3 * 80, bytes: 138_100 },
    // 5 to 8 for each commit.
    mysql: { statements: 8 * 80, packets: 2 * 80, bytes: 138_200 },
  },
  // Children that end together notify their parent in one message: 2 messages were observed, and 7 to 9 commits. One
  // message per child would exceed every bound that is not in the hundreds, and one row per child every one that is.
  "100 children of a map": {
    calls: { commit: 40, claim: 20, logs: 20, inbox: 20, now: 20, run: 20, runsById: 1 },
    rows: {
      "runs inserted": 101,
      "runs updated": 101 + 20,
      "tasks inserted": 101,
      "tasks updated": 101 + 60,
      "tasks deleted": 101,
      "events inserted": 101 + 20,
      "inbox inserted": 20,
      "inbox deleted": 20,
    },
    postgres: { statements: 100, bytes: 65_000 },
    sqlite: { statements: 1_200, bytes: 65_000 },
    mysql: { statements: 400, packets: 120, bytes: 65_000 },
  },
};

/** Everything that the operation may cost on this store. */
export function budgetOf(name: OperationName, kind: StoreKind): Cost {
  const { calls, rows, ...stores } = budgets[name];
  const asked = Object.fromEntries(Object.entries(calls).map(([method, times]) => [`calls of ${method}`, times]));
  return kind === "memory" ? asked : { ...asked, ...rows, ...stores[kind] };
}
