/** Folds every log and compares what it says with the tables. The log is the truth; a difference is a bug or a hand. */
import { decode, encode } from "../core/codec.js";
import { dataOf } from "../core/event.js";
import { fold, nextDueAt, type RunState, statusOf, waitingFor } from "../core/state.js";
import type { RunRecord, Store, StoredEvent, TaskRecord } from "../store/store.js";
import { readWaiting } from "./info.js";

export interface Difference {
  readonly runId: string;
  /** "status", "output", "task", "log"… */
  readonly what: string;
  readonly log: unknown;
  readonly table: unknown;
}

export interface Verification {
  readonly runs: number;
  readonly events: number;
  readonly differences: readonly Difference[];
}

const pageSize = 200;

export async function verify(store: Store, onlyRun?: string): Promise<Verification> {
  const differences: Difference[] = [];
  let runs = 0;
  let events = 0;
  for await (const page of pages(store, onlyRun)) {
    const ids = page.map((run) => run.id);
    const [logs, tasks] = await Promise.all([store.logs(ids), store.tasks(ids)]);
    // Read again: what changed while we looked is compared the next time.
    const again = new Map((await store.runsById(ids)).map((run) => [run.id, run]));
    for (const run of page) {
      const log = logs.get(run.id) ?? [];
      const task = tasks.find((one) => one.runId === run.id);
      runs += 1;
      events += log.length;
      const now = again.get(run.id);
      if (task?.state === "owned" || now === undefined || now.status !== run.status || now.waiting !== run.waiting)
        continue;
      differences.push(...compare(run, task, log));
    }
  }
  return { runs, events, differences };
}

async function* pages(store: Store, onlyRun: string | undefined): AsyncGenerator<readonly RunRecord[]> {
  if (onlyRun !== undefined) {
    yield await store.runsById([onlyRun]);
    return;
  }
  let after: { createdAt: number; id: string } | undefined;
  for (;;) {
    const page = await store.runs({ limit: pageSize, ...(after === undefined ? {} : { after }) });
    if (page.length > 0) yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    after = { createdAt: last.createdAt, id: last.id };
  }
}

function compare(run: RunRecord, task: TaskRecord | undefined, log: readonly StoredEvent[]): Difference[] {
  let state: RunState;
  try {
    state = fold(log);
  } catch (error) {
    return [{ runId: run.id, what: "log", log: error instanceof Error ? error.message : String(error), table: null }];
  }
  const found: Difference[] = [];
  try {
    compareRow(run, task, state, found);
  } catch (error) {
    found.push({
      runId: run.id,
      what: "log",
      log: error instanceof Error ? error.message : String(error),
      table: null,
    });
  }
  return found;
}

function compareRow(run: RunRecord, task: TaskRecord | undefined, state: RunState, found: Difference[]): void {
  const check = (what: string, expected: unknown, actual: unknown) => {
    if (stable(expected) !== stable(actual)) found.push({ runId: run.id, what, log: expected, table: actual });
  };
  check("status", statusOf(state), run.status);
  check("startedAt", state.startedAt, run.startedAt);
  check("finishedAt", state.ending?.at ?? null, run.finishedAt);
  check("task", state.ending === null, task !== undefined);
  if (state.ending !== null) checkEnding(state, run, check);
  else if (task !== undefined) checkTask(state, run, task, check);
}

type Check = (what: string, expected: unknown, actual: unknown) => void;

function checkEnding(state: RunState, run: RunRecord, check: Check): void {
  const ending = state.ending as NonNullable<RunState["ending"]>;
  if (ending.status === "completed") check("output", dataOf(ending, "run.completed").output, readable(run.output));
  if (ending.status === "failed") check("error", dataOf(ending, "run.failed").error, readable(run.error));
}

function checkTask(state: RunState, run: RunRecord, task: TaskRecord, check: Check): void {
  if (state.startedAt === null || task.mail > 0) return;
  const note = readWaiting(run.waiting);
  if (task.state === "ready" && note.news < state.news) return;
  check("dueAt", nextDueAt(state), task.dueAt);
  if (run.waiting !== null) check("waiting", waitingFor(state), note.for);
}

/** What a column says; a damaged one says so. */
function readable(text: string | null): unknown {
  try {
    return text === null ? undefined : decode(text);
  } catch (error) {
    return { damaged: error instanceof Error ? error.message : String(error) };
  }
}

const stable = (value: unknown) => encode(value ?? null, { what: "value", limit: Number.POSITIVE_INFINITY });
