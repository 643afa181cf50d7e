/**
 * A command for one run. A run that nobody owns takes it at once, decided here by the same pure `decide` that its owner
 * would use; a run that is being executed gets it through its inbox, and its owner takes it at the next boundary.
 */
import { withHashes } from "../core/ancestry.js";
import { encode } from "../core/codec.js";
import { openCompensations } from "../core/compensation.js";
import { type Command, decide, hasOpenChildren, type Received } from "../core/decide.js";
import { dismissedBy } from "../core/dismissal.js";
import { isEnding } from "../core/ending.js";
import { InvalidStateError, RunNotFoundError, StoreError } from "../core/errors.js";
import { dataOf, event, type NewEvent } from "../core/event.js";
import type { Failure } from "../core/failure.js";
import { evolve, fold } from "../core/fold.js";
import { mailToParent, readMail, writeMail } from "../core/mail.js";
import { type RunState, statusOf } from "../core/state.js";
import { nextDueAt, parkingNote } from "../core/waiting.js";
import type { Logger } from "../define/context.js";
import type { CursorWrite, Mail, Next, RunRecord, Store, TaskRecord } from "../store/store.js";
import { tellOfCommit } from "../telemetry/tell.js";
import { readGraph } from "./dag.js";
import { readWaiting } from "./info.js";

/** How often a run may change hands under us before we stop chasing it. */
const maxTries = 50;

export interface CommandServices {
  readonly store: Store;
  readonly log: Logger;
}

export async function commandRun({ store, log }: CommandServices, runId: string, command: Command): Promise<void> {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const run = await store.run(runId);
    if (run === null) throw new RunNotFoundError(runId);
    const [task] = await store.tasks([runId]);
    const done =
      task === undefined
        ? refuse(run, command)
        : isBusy(task)
          ? await mail(store, run, task, command)
          : await amend(store, log, run, task, command);
    if (done) return;
  }
  throw new StoreError(`Run ${runId} changed hands ${maxTries} times while a "${command.type}" was tried; try again.`, {
    transient: true,
  });
}

const needSense = new Set<Command["type"]>(["pause", "resume", "resumeAt", "skip", "reattempt", "start", "import"]);

const isBusy = (task: TaskRecord) => task.state === "owned" || task.mail > 0;

function refuse(run: RunRecord, command: Command): boolean {
  if (command.type === "cancel" && run.status === "canceled") return true;
  // The row was read before the task: it may have ended in between.
  if (run.finishedAt === null) return false;
  throw new InvalidStateError(`Run ${run.id} is ${run.status} and cannot take "${command.type}".`, {
    runId: run.id,
    status: run.status,
  });
}

async function mail(store: Store, run: RunRecord, task: TaskRecord, command: Command): Promise<boolean> {
  if (command.type === "resumeAt" && task.state === "owned") {
    // Whatever is still running would be recorded as if it came after the move.
    throw new InvalidStateError(`Run ${run.id} is still being executed; wait until it is paused.`, {
      runId: run.id,
      status: "running",
    });
  }
  if (command.type === "start" && task.state === "owned") throw alreadyStarted(run);
  if (needSense.has(command.type)) await checkSense(store, run, command);
  const { undeliverable } = await store.send([writeMail(run.id, command)]);
  return undeliverable.length === 0;
}

const alreadyStarted = ({ id, status }: RunRecord) =>
  new InvalidStateError(`Run ${id} has been started already.`, { runId: id, status });

/** Whoever gives it is told at once that it makes no sense, instead of the owner passing over it in silence. */
async function checkSense(store: Store, run: RunRecord, command: Command): Promise<void> {
  // The inbox first: a message that the owner drains in between is seen twice then, which does no harm, instead of never.
  const inbox = (await store.inbox([run.id])).get(run.id) ?? [];
  const log = (await store.logs([run.id])).get(run.id) ?? [];
  const now = await store.now();
  // What was acknowledged before counts, although the owner has not come to it yet.
  const before = inbox.flatMap((row): Received[] => {
    const sent = readMail(row);
    return sent === null ? [] : [{ command: sent, at: row.at, strict: false }];
  });
  decide(fold(log), [...before, { command, at: now, strict: true }], now);
}

async function amend(store: Store, log: Logger, run: RunRecord, task: TaskRecord, command: Command): Promise<boolean> {
  const state = fold((await store.logs([run.id])).get(run.id) ?? []);
  const now = await store.now();
  const after = state.seq;
  const mustUndo = openCompensations(state).length > 0;
  // A run that is overdue and has something to undo does not end here: its owner sees to that.
  const decided = decide(state, [{ command, at: now, strict: true, idle: true }], now).filter(
    (one) => !mustUndo || one.type !== "run.failed",
  );
  const events = await withAncestry(store, run, state, decided);
  if (command.type === "start" && task.dueAt !== null) throw alreadyStarted(run);
  if (events.length === 0 && command.type !== "start") return true;
  const dismissed = dismissedBy(run.id, state, events);
  if (events.some((one) => one.type === "run.cancel_requested") && !hasOpenChildren(state) && !mustUndo)
    events.push(canceled(command));
  for (const one of events) evolve(state, { ...one, seq: state.seq + 1, at: now });
  const { next, toParent } = consequences(run, task, state, events, command.type === "start");
  const written = events.filter((one) => !isEnding(one));
  const none: readonly never[] = [];
  const transition = {
    runId: run.id,
    after,
    events: written,
    next,
    drained: none,
    starts: none,
    mail: [...toParent, ...dismissed],
    release: none,
    cursors: state.steps !== null ? forgottenCursors(written) : none,
  };
  try {
    const result = await store.commit({ fence: null, transitions: [transition], starts: [] });
    if (result.kind !== "committed") return false;
    tellOfCommit(log, run, { ...transition, at: result.at });
    return true;
  } catch (error) {
    if (await wasWritten(store, run.id, after, written)) return true;
    throw error;
  }
}

/** An output that an operator gave is a link of the chain like any other. */
async function withAncestry(store: Store, run: RunRecord, state: RunState, events: NewEvent[]): Promise<NewEvent[]> {
  if (state.steps === null || !events.some(({ type }) => type === "step.completed")) return events;
  return withHashes(events, state, (await readGraph(store, run)).parentsOf);
}

/** A step that was passed over, and is come back to, begins at its beginning. */
function forgottenCursors(events: readonly NewEvent[]): CursorWrite[] {
  return events.flatMap(({ type, node }) => (type === "step.skipped" && node !== null ? [{ node, cursor: null }] : []));
}

function canceled(command: Command): NewEvent {
  const reason = command.type === "cancel" ? command.reason : null;
  return event("run.canceled", {}, reason === null ? {} : { reason });
}

/** The answer was lost, not the commit: what we wanted to write is there, word for word. */
async function wasWritten(store: Store, runId: string, after: number, events: readonly NewEvent[]): Promise<boolean> {
  const written = await store.log(runId, { after, limit: events.length });
  return (
    written.length === events.length &&
    events.every((one, index) => written[index]?.type === one.type && written[index]?.data === one.data)
  );
}

function consequences(
  run: RunRecord,
  task: TaskRecord,
  state: RunState,
  events: readonly NewEvent[],
  starts: boolean,
): { next: Next; toParent: Mail[] } {
  if (state.ending !== null) {
    const { status } = state.ending;
    const failure = failureOf(status, events);
    const error = failure === null ? null : encode(failure, { what: "error", limit: Number.POSITIVE_INFINITY });
    const message = mailToParent(run, status, null, failure);
    const next: Next = { kind: "finish", status, output: null, error, startedAt: state.startedAt };
    return { next, toParent: message === null ? [] : [message] };
  }
  return { next: state.startedAt === null ? parkUnbegun(run, task, state, starts) : park(run, state), toParent: [] };
}

function failureOf(status: string, events: readonly NewEvent[]): Failure | null {
  const last = events.at(-1) as NewEvent;
  if (status === "failed") return dataOf(last, "run.failed").error;
  const { reason } = dataOf(last, "run.canceled");
  return reason === undefined ? null : { name: "RunCanceledError", message: reason };
}

/** With news for its code the run is ready now; otherwise it goes on waiting as it did. */
function park(run: RunRecord, state: RunState): Next {
  const seen = readWaiting(run.waiting).news;
  const hasNews = state.paused === null && (seen < 0 || state.news > seen);
  return {
    kind: "park",
    status: statusOf(state) as "waiting" | "paused",
    waiting: parkingNote(state, seen),
    startedAt: null,
    wakeAt: hasNews ? null : nextDueAt(state),
    wakeIn: hasNews ? 0 : null,
  };
}

/** A run that has not begun keeps the time it was planned for, also over a pause. One without is held by somebody. */
function parkUnbegun(run: RunRecord, task: TaskRecord, state: RunState, starts: boolean): Next {
  const note = readWaiting(run.waiting);
  const startAt = task.dueAt ?? note.startAt ?? null;
  // By its parent, which lets only so many go at a time; or it was stored to be started later.
  const isHeld = !starts && startAt === null && (run.status !== "paused" || note.held === true);
  if (state.paused === null) {
    return {
      kind: "park",
      status: "pending",
      waiting: null,
      startedAt: null,
      wakeAt: startAt,
      wakeIn: startAt === null && !isHeld ? 0 : null,
    };
  }
  return {
    kind: "park",
    status: "paused",
    waiting: parkingNote(state, -1, isHeld ? { held: true } : startAt === null ? {} : { startAt }),
    startedAt: null,
    wakeAt: state.paused.recheckAt,
    wakeIn: null,
  };
}
