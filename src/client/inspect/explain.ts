/** Explains in a sentence why a run is not moving, for the engineer on call. */

import { dagOf, type FrozenDag } from "../../core/graph/frozen-dag.js";
import { graphRoute } from "../../core/naming/route.js";
import { isCompensation } from "../../core/run/compensation.js";
import type { StoredEvent } from "../../core/run/event.js";
import { fold } from "../../core/run/fold.js";
import { decodeMessage } from "../../core/run/message.js";
import { hasParkedSteps, readParkingNote } from "../../core/run/parking-note.js";
import type { Op, RunState } from "../../core/run/state.js";
import type { Waiting } from "../../core/run/stored-schema.js";
import { waitingFor } from "../../core/run/waiting.js";
import type { Runtime } from "../../runtime/runtime.js";
import { canExecute, findLiveWorkers, isWorkerLive } from "../../store/contract/live-workers.js";
import type { InboxRow, PausedQueue, RunRecord, Store, TaskRecord, WorkerRecord } from "../../store/contract/store.js";
import { pausedQueueOf } from "../operate/queues.js";
import { executingCountOf } from "../operate/workers.js";
import { explainGathering } from "./explain-gathering.js";
import { explainLimited, explainLimitedStep } from "./explain-limited.js";
import { explainQueued } from "./explain-queued.js";
import { withStartDeadline } from "./explain-start-deadline.js";
import type { Explanation } from "./explanation.js";
import { nodeName } from "./run-graph.js";
import { errorOf } from "./run-info.js";
import { readLog } from "./run-log.js";

export async function explainRun(store: Store, run: RunRecord, runtime: Runtime): Promise<Explanation> {
  const explanation = await explainState(store, run, runtime);
  const canExpire = run.status === "pending" || run.status === "paused";
  return canExpire && explanation.because !== "ended" ? withStartDeadline(store, run, explanation) : explanation;
}

async function explainState(store: Store, run: RunRecord, runtime: Runtime): Promise<Explanation> {
  if (run.finishedAt !== null) return explainEnded(run, run.finishedAt);
  const [task] = await store.tasks([run.id]);
  // The run ended between the two reads.
  if (task === undefined) return explainState(store, (await store.run(run.id)) ?? run, runtime);
  const dueExplanation = task.state === "owned" ? null : await explainDue(store, run, task, runtime);
  const log = await readLog(store, run);
  const state = foldOrNull(run, log);
  if (state === null) return explainDamaged(run);
  // A paused run that has not started may be due, but the pause is the reason why no worker starts it.
  if (state.startedAt === null && state.paused !== null && task.state !== "owned")
    return explainPaused(state.paused, null);
  if (dueExplanation !== null)
    return state.cancelRequest === null
      ? dueExplanation
      : { ...dueExplanation, text: `${beingCanceledText} ${dueExplanation.text}` };
  const dag = dagOf(run, state);
  if (task.state === "owned") {
    const pendingRequest =
      acceptedRequest(log, state) ?? (task.pendingMessages > 0 ? await unreadRequest(store, run.id) : null);
    const worker = (await store.workers()).find(({ id }) => id === task.owner);
    const now = await store.now();
    const hasExpiredLease = worker !== undefined && !isWorkerLive(worker, now, runtime);
    const explanation = explainOwned(worker, hasExpiredLease, { log, state, dag, pendingRequest });
    return explanation.because === "executing" ? withLimitedStep(store, run, state, explanation) : explanation;
  }
  if (state.paused !== null) return explainPaused(state.paused, dag);
  if (state.startedAt === null)
    return explainGathering(run, task) ?? (await explainQueued(store, run, task)) ?? explainPlanned(run, task);
  const waiting = { ...(await explainWaiting(store, { log, state, dag })), until: toDate(task.dueAt) };
  return hasParkedSteps(run.waiting) ? withParkedStep(store, run, state, waiting) : waiting;
}

/** A run whose code waits for a slot of a step is limited, unless another of its steps is being executed meanwhile. */
async function withLimitedStep(
  store: Store,
  run: RunRecord,
  state: RunState,
  explanation: Explanation,
): Promise<Explanation> {
  const step = await explainLimitedStep(store, run.id);
  if (step === null) return explanation;
  const { text, since, limited } = step;
  if (executingStepsOf(state).length > 0) return { ...explanation, text: `${explanation.text} ${text}` };
  return { because: "limited", text, since, until: limited.earliestAt, limited };
}

/** A run that was parked because its steps wait for slots is limited, unless it waits for something else as well. */
async function withParkedStep(
  store: Store,
  run: RunRecord,
  state: RunState,
  waiting: Explanation,
): Promise<Explanation> {
  const step = await explainLimitedStep(store, run.id);
  if (step === null) return waiting;
  const { text, since, limited } = step;
  if (waitingFor(state).some(({ kind }) => kind !== "retry")) return { ...waiting, text: `${waiting.text} ${text}` };
  return { because: "limited", text, since, until: limited.earliestAt, limited };
}

const executingStepsOf = ({ ops }: RunState) =>
  [...ops].filter(([, op]) => op.kind === "step" && op.phase === "started");

/** Returns null if the log is damaged and a worker has paused the run for that reason, which its row contains. */
function foldOrNull(run: RunRecord, log: readonly StoredEvent[]): RunState | null {
  try {
    return fold(log);
  } catch (error) {
    if (run.status === "paused" && readParkingNote(run.waiting).paused !== undefined) return null;
    throw error;
  }
}

function explainDamaged(run: RunRecord): Explanation {
  const { paused: reason, pausedAt = null } = readParkingNote(run.waiting);
  const since = toDate(pausedAt);
  const sinceWhen = since === null ? "" : ` since ${since.toISOString()}`;
  const text = `It has been paused${sinceWhen} until its log is repaired and an operator resumes it: ${reason}`;
  return { because: "paused", text, since, until: null };
}

const beingCanceledText = "It is being canceled: a worker has to compensate its completed steps.";

interface RunFacts {
  readonly log: readonly StoredEvent[];
  readonly state: RunState;
  /** The frozen graph of the run; null if the run has none. */
  readonly dag: FrozenDag | null;
}

/** A cancel or a pause that was acknowledged to its caller and has not taken effect yet. */
interface PendingRequest {
  readonly kind: "cancel" | "pause";
  readonly reason: string | null;
  readonly at: number | null;
}

/** The request that the worker has already recorded in the log. */
function acceptedRequest(log: readonly StoredEvent[], { cancelRequest, paused }: RunState): PendingRequest | null {
  if (cancelRequest === null) return paused === null ? null : { kind: "pause", reason: paused.reason, at: paused.at };
  const at = log.findLast(({ type }) => type === "run.cancel_requested")?.at ?? null;
  return { kind: "cancel", reason: cancelRequest.reason, at };
}

/** The request that is still in the inbox; a cancel takes precedence over a pause. */
async function unreadRequest(store: Store, runId: string): Promise<PendingRequest | null> {
  const inbox = (await store.inbox([runId])).get(runId) ?? [];
  const row = inbox.findLast(({ kind }) => kind === "cancel") ?? inbox.findLast(({ kind }) => kind === "pause");
  if (row === undefined) return null;
  const kind = row.kind as PendingRequest["kind"];
  return { kind, reason: reasonIn(row), at: row.at };
}

/** Returns null if the message has no reason or is damaged; the worker drops a damaged message with a warning. */
function reasonIn(row: InboxRow): string | null {
  try {
    const command = decodeMessage(row);
    return command?.type === "cancel" || command?.type === "pause" ? command.reason : null;
  } catch {
    return null;
  }
}

/** Explains why no worker executes a run that is due; null if the run is not due. */
export async function explainDue(
  store: Store,
  run: RunRecord,
  task: TaskRecord,
  runtime: Runtime,
): Promise<Explanation | null> {
  if (task.state === "owned" || (task.state === "parked" && (task.dueAt === null || task.dueAt > (await store.now()))))
    return null;
  const since = toDate(task.dueAt);
  const pausedQueue = await pausedQueueOf(store, run.workflow, task.route);
  if (pausedQueue !== null) return explainPausedQueue(pausedQueue, since);
  const sinceWhen = since === null ? "It is due" : `It has been due since ${since.toISOString()}`;
  const liveWorkers = await findLiveWorkers(store, runtime);
  const capableWorkers = liveWorkers.filter((worker) => canExecute(worker, task, run));
  if (capableWorkers.length > 0) {
    const limited = await explainLimited(store, task, since);
    if (limited !== null) return limited;
    const names = capableWorkers
      .map((worker) => `"${worker.name}" (executing ${executingCountOf(worker)} as of its last heartbeat)`)
      .join(", ");
    return {
      because: "about_to_run",
      text: `${sinceWhen}, and waits for a free slot of ${names}.`,
      since,
      until: null,
    };
  }
  const text = `${sinceWhen}, but no live worker has ${describeRequirement(run, task)}.${describeOtherVersions(run, liveWorkers)}`;
  return { because: "no_worker", text, since, until: null };
}

function explainPausedQueue({ name, pausedAt, reason }: PausedQueue, dueSince: Date | null): Explanation {
  const reasonText = reason === null ? "" : `: ${reason}`;
  const dueText = dueSince === null ? "It is due" : `It has been due since ${dueSince.toISOString()}`;
  const text = `${dueText}, but its queue "${name}" has been paused since ${iso(pausedAt)}, until an operator resumes the queue${reasonText}`;
  return { because: "queue_paused", text, since: new Date(pausedAt), until: null };
}

function describeRequirement({ workflow, version }: RunRecord, { route }: TaskRecord): string {
  if (route === graphRoute) return "jobs, which the runs of graphs built at run time need: worker({ jobs })";
  const [, queue] = route.split("\t");
  const ofVersion = version === "" ? "" : ` version "${version}"`;
  return `workflow "${workflow}"${ofVersion}${queue === undefined ? "" : `, queue "${queue}"`}`;
}

function describeOtherVersions({ workflow, version }: RunRecord, liveWorkers: readonly WorkerRecord[]): string {
  const routes = liveWorkers.flatMap((worker) => worker.routes.filter((route) => route.workflow === workflow));
  const versions = [...new Set(routes.map((route) => route.version))].filter((other) => other !== version);
  if (versions.length === 0) return liveWorkers.length === 0 ? " There is no live worker at all." : "";
  const list = versions.map((other) => (other === "" ? "one without a version" : `"${other}"`)).join(", ");
  return ` Live workers have other versions of it: ${list}; a run stays with the version that it was started with.`;
}

function explainEnded(run: RunRecord, finishedAt: number): Explanation {
  const error = errorOf(run);
  const why = error === null ? "" : `: ${error.message}`;
  const since = new Date(finishedAt);
  const how = run.status === "canceled" ? "was canceled" : run.status;
  return { because: "ended", text: `It ${how} at ${since.toISOString()}${why}`, since, until: null };
}

function explainPaused(pause: NonNullable<RunState["paused"]>, dag: FrozenDag | null): Explanation {
  const { reason, at, node, resumeOn, recheckAt } = pause;
  const since = new Date(at);
  const where = node === null ? "" : ` at ${describeNode(dag, node)}`;
  const ways = [
    "an operator resumes it",
    ...(resumeOn === null ? [] : [`the signal "${resumeOn}" arrives`]),
    ...(recheckAt === null ? [] : [`it is tried again at ${new Date(recheckAt).toISOString()}`]),
  ];
  const text = `It has been paused${where} since ${since.toISOString()} until ${ways.join(", or ")}: ${reason}`;
  return { because: "paused", text, since, until: toDate(recheckAt) };
}

function explainOwned(
  worker: WorkerRecord | undefined,
  hasExpiredLease: boolean,
  { log, state, dag, pendingRequest }: RunFacts & { readonly pendingRequest: PendingRequest | null },
): Explanation {
  const lastEvent = log.at(-1);
  const since = toDate(lastEvent?.at ?? null);
  const name = worker === undefined ? "a worker" : `worker "${worker.name}" (${worker.host}, pid ${worker.pid})`;
  if (worker !== undefined && hasExpiredLease) {
    const heartbeatText = new Date(worker.heartbeatAt).toISOString();
    const text = `It belongs to ${name}, whose last heartbeat was at ${heartbeatText}. Any live worker takes it over.${requestText(pendingRequest)}`;
    return { because: "worker_lease_expired", text, since: new Date(worker.heartbeatAt), until: null };
  }
  const executingSteps = executingStepsOf(state);
  const steps = executingSteps
    .map(([step]) => `${describeNode(dag, step)}${sinceText(log, step, "step.started")}`)
    .join(", ");
  const text = `It is being executed by ${name}${steps === "" ? `. ${betweenStepsText}` : `: ${steps}.`}`;
  const isUndoing = executingSteps.length > 0 && executingSteps.every(([step]) => isCompensation(step));
  const effectText = pendingRequest === null || isUndoing ? "" : takesEffectText;
  return { because: "executing", text: text + requestText(pendingRequest) + effectText, since, until: null };
}

function requestText(pendingRequest: PendingRequest | null): string {
  if (pendingRequest === null) return "";
  const { kind, reason, at } = pendingRequest;
  const when = at === null ? "" : ` at ${iso(at)}`;
  return ` A ${kind} was requested${when}${reason === null ? "." : `: ${reason.replace(/[.]$/, "")}.`}`;
}

const takesEffectText = " It takes effect when the running steps have ended or reach a checkpoint.";

const betweenStepsText =
  "No step of it is recorded as running: its code is between steps, or awaits something that is not under ctx, or a schema.";

function explainPlanned(run: RunRecord, task: TaskRecord): Explanation {
  const since = new Date(run.createdAt);
  const until = toDate(task.dueAt);
  if (until === null && run.parentId === null)
    return { because: "planned", text: "It has not started: call start() on its handle.", since, until };
  const text =
    until === null
      ? "It has not started: its parent limits how many children run at a time, and has not released this one yet."
      : `It has not started: it is planned for ${until.toISOString()}.`;
  return { because: "planned", text, since, until };
}

async function explainWaiting(store: Store, facts: RunFacts): Promise<Explanation> {
  const parts = await Promise.all(waitingFor(facts.state).map((waiting) => describeWaiting(store, waiting, facts)));
  const since = toDate(facts.log.at(-1)?.at ?? null);
  const text =
    parts.length === 0 ? "Its log names nothing that it waits for." : `It waits for ${parts.join("; and for ")}.`;
  return { because: "waiting", text: text + unconsumedSignalsText(facts.state), since, until: null };
}

async function describeWaiting(store: Store, waiting: Waiting, { log, state, dag }: RunFacts): Promise<string> {
  switch (waiting.kind) {
    case "sleep":
      return `the end of its sleep "${waiting.name}"${untilText(state.ops.get(waiting.name))}`;
    case "signal": {
      const wait = [...state.ops].find(
        ([, op]) => op.kind === "wait" && op.phase === "open" && op.names === waiting.names,
      );
      const names = waiting.names.map((name) => `"${name}"`).join(", ");
      return `the signal ${names}${wait === undefined ? "" : sinceText(log, wait[0], "wait.started")}${untilText(wait?.[1])}`;
    }
    case "step":
      return `the time of ${describeNode(dag, waiting.step)}${untilText(state.ops.get(waiting.step))}`;
    case "retry":
      return `attempt ${waiting.attempt} at ${describeNode(dag, waiting.step)}${untilText(state.ops.get(waiting.step))}${lastErrorText(log, waiting.step)}`;
    case "child": {
      const child = await store.run(waiting.runId);
      return `its child ${waiting.runId} (workflow "${waiting.workflow}"${child === null ? "" : `, ${child.status}`})`;
    }
    case "map":
      return `the children of "${waiting.name}" (workflow "${waiting.workflow}"): ${waiting.settled} of ${waiting.count} have ended`;
    case "jobs":
      return `${waiting.open} of its nodes, whose jobs run on other workers: ${waiting.jobs.join(", ")}`;
    case "reattempt":
      return `its next attempt${state.reattemptAt === null ? "" : ` at ${new Date(state.reattemptAt).toISOString()}`}`;
  }
}

function describeNode(dag: FrozenDag | null, id: string): string {
  const name = nodeName(dag, id);
  return name === id ? `step "${id}"` : `node "${name}"`;
}

function untilText(op: Op | undefined): string {
  if (op === undefined || !("dueAt" in op) || op.dueAt === null) return "";
  return op.kind === "wait" ? `, until ${iso(op.dueAt)} at the latest` : ` at ${iso(op.dueAt)}`;
}

function sinceText(log: readonly StoredEvent[], node: string, type: string): string {
  const event = log.findLast((event) => event.node === node && event.type === type);
  return event === undefined ? "" : `, since ${iso(event.at)}`;
}

function lastErrorText(log: readonly StoredEvent[], step: string): string {
  const failedEvent = log.findLast(({ node, type }) => node === step && type === "step.failed");
  if (failedEvent?.data == null) return "";
  const { error } = JSON.parse(failedEvent.data) as { readonly error?: { readonly message?: string } };
  return error?.message === undefined ? "" : `, because of: ${error.message}`;
}

const iso = (at: number) => new Date(at).toISOString();
const toDate = (at: number | null) => (at === null ? null : new Date(at));

/** Lists signals that no wait consumed: they arrived early, or their names are misspelled. */
function unconsumedSignalsText({ pendingSignals }: RunState): string {
  const names = [...new Set(pendingSignals.map(({ name }) => `"${name}"`))];
  return names.length === 0 ? "" : ` It has received ${names.join(", ")}, which it does not wait for.`;
}
