/** Why a run is not moving, in one plain answer for people on call. */

import { dagOf, type FrozenDag } from "../../core/graph/frozen-dag.js";
import { graphRoute } from "../../core/naming/route.js";
import { isCompensation } from "../../core/run/compensation.js";
import type { StoredEvent } from "../../core/run/event.js";
import { fold } from "../../core/run/fold.js";
import { readMail } from "../../core/run/message.js";
import { readParkingNote } from "../../core/run/parking-note.js";
import type { Op, RunState } from "../../core/run/state.js";
import type { Waiting } from "../../core/run/stored-schema.js";
import { waitingFor } from "../../core/run/waiting.js";
import type { Runtime } from "../../runtime/runtime.js";
import { heardOf, isHeardOf, serves } from "../../store/contract/live-workers.js";
import type { InboxRow, PausedQueue, RunRecord, Store, TaskRecord, WorkerRecord } from "../../store/contract/store.js";
import { pausedQueueOf } from "../operate/queues.js";
import { readLog } from "./log.js";
import { nodeName } from "./run-graph.js";
import { errorOf } from "./run-info.js";

export interface Explanation {
  readonly because:
    | "ended"
    | "paused"
    | "executing"
    | "worker_silent"
    | "planned"
    | "waiting"
    | "queue_paused"
    | "no_worker"
    | "about_to_run";
  /** One or two sentences. */
  readonly text: string;
  /** Since when it has been like this, and until when it will be if nothing else happens, as far as that is known. */
  readonly since: Date | null;
  readonly until: Date | null;
}

export async function explainRun(store: Store, run: RunRecord, runtime: Runtime): Promise<Explanation> {
  if (run.finishedAt !== null) return ended(run, run.finishedAt);
  const [task] = await store.tasks([run.id]);
  // It ended between the two looks.
  if (task === undefined) return explainRun(store, (await store.run(run.id)) ?? run, runtime);
  const due = task.state === "owned" ? null : await explainDue(store, run, task, runtime);
  const log = await readLog(store, run);
  const state = foldOrNull(run, log);
  if (state === null) return damaged(run);
  // A paused run that has not begun stays due: what keeps it is the pause.
  if (state.startedAt === null && state.paused !== null && task.state !== "owned") return paused(state.paused, null);
  if (due !== null) return state.cancel === null ? due : { ...due, text: `${beingCanceled} ${due.text}` };
  const dag = dagOf(run, state);
  if (task.state === "owned") {
    const asked = request(log, state) ?? (task.mail > 0 ? await unreadRequest(store, run.id) : null);
    const worker = (await store.workers()).find(({ id }) => id === task.owner);
    const now = await store.now();
    const isSilent = worker !== undefined && !isHeardOf(worker, now, runtime);
    return owned(worker, isSilent, { log, state, dag, asked });
  }
  if (state.paused !== null) return paused(state.paused, dag);
  if (state.startedAt === null) return planned(run, task);
  return { ...(await waits(store, { log, state, dag })), until: instant(task.dueAt) };
}

/** null: it is paused because it cannot be folded, and its row says why. */
function foldOrNull(run: RunRecord, log: readonly StoredEvent[]): RunState | null {
  try {
    return fold(log);
  } catch (error) {
    if (run.status === "paused" && readParkingNote(run.waiting).paused !== undefined) return null;
    throw error;
  }
}

function damaged(run: RunRecord): Explanation {
  const { paused: reason, pausedAt = null } = readParkingNote(run.waiting);
  const since = instant(pausedAt);
  const sinceWhen = since === null ? "" : ` since ${since.toISOString()}`;
  const text = `It has been paused${sinceWhen} until its log is repaired and somebody resumes it: ${reason}`;
  return { because: "paused", text, since, until: null };
}

const beingCanceled = "It is being canceled: a worker is to undo what it has done.";

/** What is known of a run that has begun. */
interface Known {
  readonly log: readonly StoredEvent[];
  readonly state: RunState;
  readonly dag: FrozenDag | null;
}

/** A cancel or a pause that is acknowledged, and that the code of the run has not heeded yet. */
interface Request {
  readonly what: "cancel" | "pause";
  readonly reason: string | null;
  readonly at: number | null;
}

/** What the worker has taken from the inbox. */
function request(log: readonly StoredEvent[], { cancel, paused }: RunState): Request | null {
  if (cancel === null) return paused === null ? null : { what: "pause", reason: paused.reason, at: paused.at };
  const at = log.findLast(({ type }) => type === "run.cancel_requested")?.at ?? null;
  return { what: "cancel", reason: cancel.reason, at };
}

/** What the worker has still to take from the inbox; a cancel counts more than a pause. */
async function unreadRequest(store: Store, runId: string): Promise<Request | null> {
  const inbox = (await store.inbox([runId])).get(runId) ?? [];
  const row = inbox.findLast(({ kind }) => kind === "cancel") ?? inbox.findLast(({ kind }) => kind === "pause");
  if (row === undefined) return null;
  const what = row.kind as Request["what"];
  return { what, reason: reasonIn(row), at: row.at };
}

/** null, too, when the message is damaged: the worker drops it then, and says so. */
function reasonIn(row: InboxRow): string | null {
  try {
    const command = readMail(row);
    return command?.type === "cancel" || command?.type === "pause" ? command.reason : null;
  } catch {
    return null;
  }
}

/** Of a run that is due and that no worker executes: why. null when it is not due. */
export async function explainDue(
  store: Store,
  run: RunRecord,
  task: TaskRecord,
  runtime: Runtime,
): Promise<Explanation | null> {
  if (task.state === "owned" || (task.state === "parked" && (task.dueAt === null || task.dueAt > (await store.now()))))
    return null;
  const since = instant(task.dueAt);
  const paused = await pausedQueueOf(store, run.workflow, task.route);
  if (paused !== null) return queuePaused(paused, since);
  const sinceWhen = since === null ? "It is due" : `It has been due since ${since.toISOString()}`;
  const heard = await heardOf(store, runtime);
  const able = heard.filter((worker) => serves(worker, task, run));
  if (able.length > 0) {
    const names = able.map(({ name, owned }) => `"${name}" (executing ${owned})`).join(", ");
    return { because: "about_to_run", text: `${sinceWhen}, and waits for a place at ${names}.`, since, until: null };
  }
  const text = `${sinceWhen}, but no live worker has ${what(run, task)}.${otherVersions(run, heard)}`;
  return { because: "no_worker", text, since, until: null };
}

function queuePaused({ name, pausedAt, reason }: PausedQueue, dueSince: Date | null): Explanation {
  const why = reason === null ? "" : `: ${reason}`;
  const due = dueSince === null ? "It is due" : `It has been due since ${dueSince.toISOString()}`;
  const text = `${due}, but its queue "${name}" has been paused since ${iso(pausedAt)}, until somebody resumes the queue${why}`;
  return { because: "queue_paused", text, since: new Date(pausedAt), until: null };
}

function what({ workflow, version }: RunRecord, { route }: TaskRecord): string {
  if (route === graphRoute) return "jobs, which the runs of graphs built at run time need: worker({ jobs })";
  const [, queue] = route.split("\t");
  const ofVersion = version === "" ? "" : ` version "${version}"`;
  return `workflow "${workflow}"${ofVersion}${queue === undefined ? "" : `, queue "${queue}"`}`;
}

function otherVersions({ workflow, version }: RunRecord, heard: readonly WorkerRecord[]): string {
  const routes = heard.flatMap((worker) => worker.routes.filter((route) => route.workflow === workflow));
  const versions = [...new Set(routes.map((route) => route.version))].filter((other) => other !== version);
  if (versions.length === 0) return heard.length === 0 ? " There is no live worker at all." : "";
  const list = versions.map((other) => (other === "" ? "one without a version" : `"${other}"`)).join(", ");
  return ` Live workers have other versions of it: ${list}; a run stays with the version that it was started with.`;
}

function ended(run: RunRecord, finishedAt: number): Explanation {
  const error = errorOf(run);
  const why = error === null ? "" : `: ${error.message}`;
  const since = new Date(finishedAt);
  const how = run.status === "canceled" ? "was canceled" : run.status;
  return { because: "ended", text: `It ${how} at ${since.toISOString()}${why}`, since, until: null };
}

function paused(pause: NonNullable<RunState["paused"]>, dag: FrozenDag | null): Explanation {
  const { reason, at, node, resumeOn, recheckAt } = pause;
  const since = new Date(at);
  const where = node === null ? "" : ` at ${place(dag, node)}`;
  const ways = [
    "somebody resumes it",
    ...(resumeOn === null ? [] : [`the signal "${resumeOn}" comes`]),
    ...(recheckAt === null ? [] : [`it is tried again at ${new Date(recheckAt).toISOString()}`]),
  ];
  const text = `It has been paused${where} since ${since.toISOString()} until ${ways.join(", or ")}: ${reason}`;
  return { because: "paused", text, since, until: instant(recheckAt) };
}

function owned(
  worker: WorkerRecord | undefined,
  isSilent: boolean,
  { log, state, dag, asked }: Known & { readonly asked: Request | null },
): Explanation {
  const last = log.at(-1);
  const since = instant(last?.at ?? null);
  const name = worker === undefined ? "a worker" : `worker "${worker.name}" (${worker.host}, pid ${worker.pid})`;
  if (worker !== undefined && isSilent) {
    const heardAt = new Date(worker.beatAt).toISOString();
    const text = `It belongs to ${name}, which was last heard of at ${heardAt}. Any live worker takes it over.${inAnswerTo(asked)}`;
    return { because: "worker_silent", text, since: new Date(worker.beatAt), until: null };
  }
  const executing = [...state.ops].filter(([, op]) => op.kind === "step" && op.phase === "started");
  const steps = executing.map(([step]) => `${place(dag, step)}${sinceOf(log, step, "step.started")}`).join(", ");
  const text = `It is being executed by ${name}${steps === "" ? `. ${betweenSteps}` : `: ${steps}.`}`;
  const isUndoing = executing.length > 0 && executing.every(([step]) => isCompensation(step));
  const heeded = asked === null || isUndoing ? "" : takesEffect;
  return { because: "executing", text: text + inAnswerTo(asked) + heeded, since, until: null };
}

function inAnswerTo(asked: Request | null): string {
  if (asked === null) return "";
  const { what, reason, at } = asked;
  const when = at === null ? "" : ` at ${iso(at)}`;
  return ` A ${what} was asked for${when}${reason === null ? "." : `: ${reason.replace(/[.]$/, "")}.`}`;
}

const takesEffect = " It acts as soon as the steps that are running have ended, or come to a checkpoint.";

const betweenSteps =
  "No step of it is recorded as running: its code is between steps, or awaits something that is not under ctx, or a schema.";

function planned(run: RunRecord, task: TaskRecord): Explanation {
  const since = new Date(run.createdAt);
  const until = instant(task.dueAt);
  if (until === null && run.parentId === null)
    return { because: "planned", text: "It has not begun: start() lets it.", since, until };
  const text =
    until === null
      ? "It has not begun: its parent runs only so many of its children at a time, and has not let this one go yet."
      : `It has not begun: it is planned for ${until.toISOString()}.`;
  return { because: "planned", text, since, until };
}

async function waits(store: Store, known: Known): Promise<Explanation> {
  const parts = await Promise.all(waitingFor(known.state).map((one) => inWords(store, one, known)));
  const since = instant(known.log.at(-1)?.at ?? null);
  const text = parts.length === 0 ? "It waits for nothing that is known." : `It waits for ${parts.join("; and for ")}.`;
  return { because: "waiting", text: text + unasked(known.state), since, until: null };
}

async function inWords(store: Store, one: Waiting, { log, state, dag }: Known): Promise<string> {
  switch (one.kind) {
    case "sleep":
      return `the end of its sleep "${one.name}"${untilOf(state.ops.get(one.name))}`;
    case "signal": {
      const wait = [...state.ops].find(([, op]) => op.kind === "wait" && op.phase === "open" && op.names === one.names);
      const names = one.names.map((name) => `"${name}"`).join(", ");
      return `the signal ${names}${wait === undefined ? "" : sinceOf(log, wait[0], "wait.started")}${untilOf(wait?.[1])}`;
    }
    case "step":
      return `the time of ${place(dag, one.step)}${untilOf(state.ops.get(one.step))}`;
    case "retry":
      return `attempt ${one.attempt} at ${place(dag, one.step)}${untilOf(state.ops.get(one.step))}${lastError(log, one.step)}`;
    case "child": {
      const child = await store.run(one.runId);
      return `its child ${one.runId} (workflow "${one.workflow}"${child === null ? "" : `, ${child.status}`})`;
    }
    case "map":
      return `the children of "${one.name}" (workflow "${one.workflow}"): ${one.settled} of ${one.count} have ended`;
    case "jobs":
      return `${one.open} of its nodes, whose jobs others execute: ${one.jobs.join(", ")}`;
    case "reattempt":
      return `its next attempt${state.reattemptAt === null ? "" : ` at ${new Date(state.reattemptAt).toISOString()}`}`;
  }
}

function place(dag: FrozenDag | null, id: string): string {
  const name = nodeName(dag, id);
  return name === id ? `step "${id}"` : `node "${name}"`;
}

function untilOf(op: Op | undefined): string {
  if (op === undefined || !("dueAt" in op) || op.dueAt === null) return "";
  return op.kind === "wait" ? `, until ${iso(op.dueAt)} at the latest` : ` at ${iso(op.dueAt)}`;
}

function sinceOf(log: readonly StoredEvent[], node: string, type: string): string {
  const event = log.findLast((one) => one.node === node && one.type === type);
  return event === undefined ? "" : `, since ${iso(event.at)}`;
}

function lastError(log: readonly StoredEvent[], step: string): string {
  const failed = log.findLast((one) => one.node === step && one.type === "step.failed");
  if (failed?.data == null) return "";
  const { error } = JSON.parse(failed.data) as { readonly error?: { readonly message?: string } };
  return error?.message === undefined ? "" : `, because of: ${error.message}`;
}

const iso = (at: number) => new Date(at).toISOString();
const instant = (at: number | null) => (at === null ? null : new Date(at));

/** A signal with a slip of the pen in its name looks like one that comes too early: both are kept. */
function unasked({ signals }: RunState): string {
  const names = [...new Set(signals.map(({ name }) => `"${name}"`))];
  return names.length === 0 ? "" : ` It has got ${names.join(", ")}, which it has not asked for.`;
}
