/** Folds every log and compares what it says with the tables. The log is the truth; a difference is a bug or a hand. */
import { decode, encode } from "../core/codec.js";
import { fold } from "../core/fold.js";
import { type RunState, statusOf } from "../core/state.js";
import { nextDueAt, waitingFor } from "../core/waiting.js";
import type { RunRecord, Store, StoredEvent, TaskRecord } from "../store/store.js";
import { readWaiting } from "./info.js";
import { withEnding } from "./log.js";
import { checkAncestry } from "./verify-ancestry.js";

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
      const log = withEnding(run, logs.get(run.id) ?? []);
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
    if (run.finishedAt !== null) checkEnding(run, log, found);
    found.push(...checkAncestry(run, log));
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
  check("task", state.ending === null, task !== undefined);
  if (state.ending === null && task !== undefined) checkTask(state, run, task, check);
}

type Check = (what: string, expected: unknown, actual: unknown) => void;

/** The end of a run is in its row alone. It must be readable, and nothing may have happened after it. */
function checkEnding(run: RunRecord, log: readonly StoredEvent[], found: Difference[]): void {
  const lastAt = log.at(-2)?.at ?? run.createdAt;
  if ((run.finishedAt as number) < lastAt) {
    found.push({ runId: run.id, what: "finishedAt", log: lastAt, table: run.finishedAt });
  }
  for (const what of ["output", "error"] as const) {
    const problem = damageOf(run[what]);
    if (problem !== null) found.push({ runId: run.id, what, log: null, table: problem });
  }
  if (run.status === "completed" && run.output === null) {
    found.push({ runId: run.id, what: "output", log: run.status, table: null });
  }
}

function checkTask(state: RunState, run: RunRecord, task: TaskRecord, check: Check): void {
  if (state.startedAt === null || task.mail > 0) return;
  const note = readWaiting(run.waiting);
  if (task.state === "ready" && note.news < state.news) return;
  check("dueAt", nextDueAt(state), task.dueAt);
  if (run.waiting !== null) check("waiting", waitingFor(state), note.for);
}

/** What is wrong with a column, if anything. */
function damageOf(text: string | null): string | null {
  try {
    if (text !== null) decode(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const stable = (value: unknown) => encode(value ?? null, { what: "value", limit: Number.POSITIVE_INFINITY });
