/**
 * What happens to a run next, given what has happened and what is asked of it. Pure: data in, events out.
 *
 * The owner of a run decides about everything in its inbox at once; a client decides about one command on a run that
 * nobody owns. Both come here, so both mean the same. No workflow code is needed: the state is data.
 */

import type { Failure } from "../encoding/error-record.js";
import { InvalidStateError } from "../errors/errors.js";
import type { FrozenDag } from "../graph/frozen-dag.js";
import { type EventData, event, type NewEvent } from "./event.js";
import { indexes, type Range, rangesOf } from "./ranges.js";
import type { Op, RunState, Signal, WaitOp } from "./state.js";
import { isDispatched, statusOf } from "./state.js";
import { callOfChild } from "./step-key.js";

export type Command =
  | { readonly type: "signal"; readonly name: string; readonly payload: string; readonly key: string | null }
  | { readonly type: "pause"; readonly reason: string | null }
  /** `output` (encoded) stands in for the result of the step that the run is stuck at. */
  | {
      readonly type: "resume";
      readonly output: string | null;
      /** See `run.resumed`. */
      readonly accept?: readonly string[];
      readonly renamed?: Readonly<Record<string, string>>;
    }
  /** Goes on from this step of the chain. */
  | { readonly type: "resumeAt"; readonly step: string }
  /** Passes over the step that the run is stuck at. */
  | { readonly type: "skip" }
  /** `force`: ends it at once, whatever its code says and without compensation. */
  | { readonly type: "cancel"; readonly reason: string | null; readonly force?: true }
  /** A run that was stored to be started later. */
  | { readonly type: "start" }
  /** Tries a node again that has not completed. `descendants` come after it, however far. */
  | { readonly type: "reattempt"; readonly node: string; readonly descendants: readonly string[] }
  /** From now on the run goes by this graph. */
  | { readonly type: "import"; readonly dag: FrozenDag }
  | {
      readonly type: "child";
      readonly node: string;
      readonly status: "completed" | "failed" | "canceled";
      readonly output: string | null;
      readonly error: Failure | null;
      readonly reason: string | null;
    }
  /** Children of a map have ended: ranges [first, last] of their places in it. */
  | {
      readonly type: "children";
      readonly node: string;
      readonly completed: readonly Range[];
      readonly failed: readonly Range[];
    }
  /** No live worker has this job any more. Whether that holds the run up is for its owner to find out. */
  | { readonly type: "jobGone"; readonly job: string }
  /**
   * The event loop of its worker stood still. `step`: in whose code, "" outside of steps. `by`: the other run whose code it
   * was. Neither: it is not known whose.
   */
  | {
      readonly type: "blocked";
      readonly worker: string;
      readonly session: string;
      readonly step: string | null;
      readonly by: string | null;
    }
  /** Attempts at nodes have ended. */
  | { readonly type: "nodes"; readonly results: readonly NodeResult[] };

export interface NodeResult {
  readonly node: string;
  readonly attempt: number;
  /** Encoded; null when it failed. */
  readonly output: string | null;
  readonly error: Failure | null;
  /** When to try again; null: it has failed for good. */
  readonly retryMs: number | null;
  readonly ms: number;
}

export interface Received {
  readonly command: Command;
  /** When it came: a signal that came before a deadline beats the timeout, one that came later does not. */
  readonly at: number;
  /** Refuse what makes no sense with an InvalidStateError (a client is told), or pass over it (nobody is there to tell). */
  readonly strict: boolean;
  /** Nobody executes the run: a step that has begun is one that rests in the middle. */
  readonly idle?: boolean;
}

/**
 * Decides about messages in the order they came, about waits that can be satisfied and about time that has passed.
 * `nextSeq` is the number that the first of the returned events will have. `withdrawing` are waits and timers whose
 * withdrawal is on its way into the log, before these events: the state still has them open, and they must take nothing.
 */
export function decide(
  state: RunState,
  received: readonly Received[],
  now: number,
  nextSeq = state.seq + 1,
  withdrawing: ReadonlySet<string> | null = null,
): NewEvent[] {
  const decision = new Decision(state, nextSeq, withdrawing);
  decision.matchWaits();
  decision.resumeIfSignalled();
  for (const { command, at, strict, idle } of received) {
    decision.passTime(at);
    try {
      decision.obey(command, idle ?? false);
    } catch (error) {
      if (strict || !(error instanceof InvalidStateError)) throw error;
    }
  }
  decision.finishMaps();
  decision.passTime(now);
  return decision.events;
}

type OpenWait = { readonly key: string; readonly op: WaitOp };

/** The state with the events decided so far laid over it: they are not stamped yet, so they cannot be folded in. */
class Decision {
  readonly events: NewEvent[] = [];
  readonly #state: RunState;
  readonly #nextSeq: number;
  readonly #waits: OpenWait[] = [];
  readonly #timers: { readonly key: string; readonly dueAt: number; readonly wait: OpenWait | null }[] = [];
  readonly #signals: Signal[];
  readonly #keys: Set<string>;
  readonly #settled = new Map<
    string,
    { readonly completed: number[]; readonly failed: number[]; readonly ended: Set<number> }
  >();
  readonly #nodesEnded = new Set<string>();
  #paused: { readonly resumeOn: string | null; readonly recheckAt: number | null; readonly node: string | null } | null;
  #cancelRequested: boolean;
  #cancelForced: boolean;
  #ended: boolean;
  #reattemptAt: number | null;

  constructor(state: RunState, nextSeq: number, withdrawing: ReadonlySet<string> | null) {
    this.#state = state;
    this.#nextSeq = nextSeq;
    this.#signals = [...state.signals];
    this.#keys = new Set();
    this.#paused = state.paused;
    this.#cancelRequested = state.cancel !== null;
    this.#cancelForced = state.cancel?.force === true;
    this.#ended = state.ending !== null;
    this.#reattemptAt = state.reattemptAt;
    for (const [key, op] of state.ops) if (withdrawing?.has(key) !== true) this.#note(key, op);
    this.#timers.sort((a, b) => a.dueAt - b.dueAt);
  }

  #note(key: string, op: Op): void {
    if (op.kind === "timer" && op.phase === "open") this.#timers.push({ key, dueAt: op.dueAt, wait: null });
    if (op.kind === "wait" && op.phase === "open") {
      const wait = { key, op };
      this.#waits.push(wait);
      if (op.dueAt !== null) this.#timers.push({ key, dueAt: op.dueAt, wait });
    }
  }

  obey(command: Command, idle: boolean): void {
    if (this.#ended) return this.#afterTheEnd(command);
    switch (command.type) {
      case "signal":
        return this.#signal(command);
      case "pause":
        return this.#pause(command.reason);
      case "resume":
        return this.#resume(command, idle);
      case "resumeAt":
        return this.#resumeAt(command.step);
      case "skip":
        return this.#skip(idle);
      case "cancel":
        return this.#cancel(command);
      case "start":
        if (this.#state.startedAt === null) return;
        throw new InvalidStateError("The run has been started already.");
      case "reattempt":
        return this.#reattempt(command);
      case "import":
        return this.#import(command.dag);
      case "jobGone":
        return;
      case "child":
        return this.#childEnded(command);
      case "children":
        return this.#childrenEnded(command);
      case "blocked":
        return this.#blocked(command);
      case "nodes":
        for (const result of command.results) this.#nodeEnded(result);
    }
  }

  /** A terminal run never changes; only cancelling what is canceled is taken as said already. */
  #afterTheEnd(command: Command): void {
    const status = statusOf(this.#state);
    if (command.type === "cancel" && status === "canceled") return;
    throw new InvalidStateError(`The run is ${status} and cannot take "${command.type}".`);
  }

  #signal({ name, payload, key }: Extract<Command, { type: "signal" }>): void {
    if (key !== null) {
      if (this.#state.signalKeys?.has(key) || this.#keys.has(key)) return;
      this.#keys.add(key);
    }
    const seq = this.#nextSeq + this.events.length;
    const received = event("signal.received", {}, key === null ? { name } : { name, key }, { payload });
    this.events.push(received);
    this.#signals.push({ seq, name, at: 0, data: received.data });
    this.matchWaits();
    this.resumeIfSignalled();
  }

  /** A pause that a signal ends consumes that signal: the next pause waits for the next one. */
  resumeIfSignalled(): void {
    const name = this.#paused?.resumeOn ?? null;
    const signal = name === null ? undefined : this.#signals.find((candidate) => candidate.name === name);
    if (signal === undefined) return;
    this.#signals.splice(this.#signals.indexOf(signal), 1);
    this.#paused = null;
    this.events.push(event("run.resumed", {}, { by: "signal", signal: signal.seq }));
  }

  /** Gives buffered signals to the waits that want them, oldest wait and oldest signal first. */
  matchWaits(): void {
    for (let index = 0; index < this.#waits.length && this.#signals.length > 0; ) {
      const wait = this.#waits[index] as OpenWait;
      const signals = this.#matching(wait.op);
      if (signals === null) {
        index += 1;
        continue;
      }
      this.#waits.splice(index, 1);
      for (const signal of signals) this.#signals.splice(this.#signals.indexOf(signal), 1);
      this.events.push(event("wait.completed", { node: wait.key }, { signals: signals.map((signal) => signal.seq) }));
    }
  }

  #matching({ names, mode }: WaitOp): Signal[] | null {
    if (mode === "any") {
      const signal = this.#signals.find((candidate) => names.includes(candidate.name));
      return signal === undefined ? null : [signal];
    }
    const chosen: Signal[] = [];
    for (const name of names) {
      const signal = this.#signals.find((candidate) => candidate.name === name && !chosen.includes(candidate));
      if (signal === undefined) return null;
      chosen.push(signal);
    }
    return chosen;
  }

  #pause(reason: string | null): void {
    if (this.#paused !== null) throw new InvalidStateError("The run is paused already.");
    if (this.#cancelRequested) throw new InvalidStateError("The run is being canceled and cannot be paused any more.");
    this.#paused = { resumeOn: null, recheckAt: null, node: null };
    this.events.push(event("run.paused", {}, { reason: reason ?? "Paused by an operator." }));
  }

  /** Twice is enough: each time, all runs of a worker stand still for a lease. */
  #blocked({ worker, session, step, by }: Extract<Command, { type: "blocked" }>): void {
    const { blocked } = this.#state;
    if (blocked !== null && [...blocked.values()].some((before) => before.session === session)) return;
    const about = { worker, session };
    if (by !== null) return void this.events.push(event("run.blocked", {}, { ...about, by }));
    if (step === null) return void this.events.push(event("run.blocked", {}, { ...about, suspected: true }));
    const place = step === "" ? {} : { node: step };
    this.events.push(event("run.blocked", place, about));
    // Where it did so before does not matter: it is not always known.
    const [before] = blocked?.values() ?? [];
    if (before === undefined || this.#paused !== null || this.#cancelRequested) return;
    this.#paused = { resumeOn: null, recheckAt: null, node: step === "" ? null : step };
    this.events.push(event("run.paused", place, blockedTwice(step, before.worker, worker)));
  }

  #resume({ output, accept, renamed }: Extract<Command, { type: "resume" }>, idle: boolean): void {
    if (this.#paused === null)
      throw new InvalidStateError(`The run is ${statusOf(this.#state)}, not paused; there is nothing to resume.`);
    const changes = { ...(accept && { accept }), ...(renamed && { renamed }) };
    if (output === null) {
      this.#reopenFailed();
      return this.#resumeBy("operator", changes);
    }
    const { key, attempt } = this.#stuckStep(idle);
    this.events.push(
      event("step.completed", { node: key, attempt, outcome: "success" }, { by: "operator" }, { output }),
    );
    this.#resumeBy("operator", { only: key, ...changes });
  }

  /** Of a graph that is held because of nodes that failed: all of them are tried again. */
  #reopenFailed(): void {
    const stuck = this.#paused?.node == null ? undefined : this.#state.ops.get(this.#paused.node);
    if (stuck?.kind !== "step" || stuck.phase !== "failed") return;
    for (const [node, op] of this.#state.ops)
      if (op.kind === "step" && op.phase === "failed")
        this.events.push(event("node.reopened", { node, attempt: op.attempt }));
  }

  #import(dag: FrozenDag): void {
    if (this.#paused === null && this.#state.startedAt !== null)
      throw new InvalidStateError(`The run is ${statusOf(this.#state)}; pause it before you change its graph.`);
    this.events.push(event("dag.imported", {}, { dag }));
  }

  #reattempt({ node, descendants }: Extract<Command, { type: "reattempt" }>): void {
    const op = this.#state.ops.get(node);
    if (op?.kind !== "step") throw new InvalidStateError(`Node "${node}" has not been tried yet.`);
    if (op.phase === "completed") throw new InvalidStateError(`Node "${node}" has completed; its output stands.`);
    if (op.phase === "started") throw new InvalidStateError(`Node "${node}" is being executed.`);
    const done = descendants.find((one) => {
      const after = this.#state.ops.get(one);
      return after?.kind === "step" && (after.phase === "completed" || after.phase === "started");
    });
    if (done !== undefined)
      throw new InvalidStateError(
        `Node "${node}" cannot be tried again: "${done}" comes after it and was built upon what it had.`,
      );
    this.events.push(event("node.reopened", { node, attempt: op.attempt }));
    if (this.#paused !== null) this.#resumeBy("operator", { only: node });
  }

  #resumeAt(step: string): void {
    if (this.#paused === null)
      throw new InvalidStateError(
        `The run is ${statusOf(this.#state)}, not paused; pause it before you send it elsewhere.`,
      );
    if (this.#state.steps !== "chain")
      throw new InvalidStateError(
        this.#state.startedAt === null
          ? "The run has not begun; there is no step to go on from."
          : "The run has no chain of steps to go on in: resumeAt is for workflow classes.",
      );
    this.events.push(event("run.moved", {}, { to: step }));
    this.#resumeBy("operator");
  }

  #skip(idle: boolean): void {
    const { key, attempt } = this.#stuckStep(idle);
    this.events.push(
      event("step.skipped", { node: key, attempt, outcome: "skipped_by_flow_control" }, { by: "operator" }),
    );
    if (this.#paused !== null) this.#resumeBy("operator", { only: key });
  }

  /** With the attempt that is passed over: the one that waits, not the one before it. */
  #stuckStep(idle = false): { readonly key: string; readonly attempt: number } {
    if (this.#paused?.node != null) {
      const op = this.#state.ops.get(this.#paused.node);
      if (op?.kind === "step" && (op.phase === "started" || op.phase === "again"))
        return { key: this.#paused.node, attempt: op.phase === "again" ? op.attempt + 1 : op.attempt };
      // It was never tried: nobody has its job.
      if (op === undefined) return { key: this.#paused.node, attempt: 1 };
      if (op.kind === "step" && op.phase === "failed") {
        // Its end is undone first, or it would stand.
        this.events.push(event("node.reopened", { node: this.#paused.node, attempt: op.attempt }));
        return { key: this.#paused.node, attempt: op.attempt + 1 };
      }
    } else {
      for (const [key, op] of this.#state.ops)
        if (op.kind === "step" && op.phase === "again") return { key, attempt: op.attempt + 1 };
      for (const [key, op] of this.#state.ops)
        if (idle && op.kind === "step" && op.phase === "started" && !isDispatched(op))
          return { key, attempt: op.attempt };
    }
    throw new InvalidStateError(this.#whyNotStuck());
  }

  /** What `skip()` and `resume({ output })` would need, in the place where they are tried. */
  #whyNotStuck(): string {
    const nothing = "The run is not stuck at a step: there is nothing to skip or to give an output for.";
    if (this.#state.paused?.error?.code !== "NON_DETERMINISM") return nothing;
    return `${nothing} Its code does not fit its log: deploy code that does and resume(), say how they belong together with resume({ accept, renamed }), or end it with cancel(reason, { force: true }).`;
  }

  /** @param more `only`: the step that is released; without it, all that the run was paused at */
  #resumeBy(by: "operator" | "recheck", more: Omit<EventData["run.resumed"], "by" | "signal"> = {}): void {
    this.#paused = null;
    this.events.push(event("run.resumed", {}, { by, ...more }));
  }

  /** With children to reach, the run's next owner cancels them; without, a client ends a parked run here and now. */
  #cancel({ reason, force }: Extract<Command, { type: "cancel" }>): void {
    if (this.#cancelRequested && !(force === true && !this.#cancelForced)) return;
    this.#cancelRequested = true;
    this.#cancelForced = force === true;
    if (this.#paused !== null) this.#resumeBy("operator");
    const data = { ...(reason === null ? {} : { reason }), ...(force === true ? { force } : {}) };
    this.events.push(event("run.cancel_requested", {}, data));
  }

  #childEnded({ node: from, status, output, error, reason }: Extract<Command, { type: "child" }>): void {
    const node = callOfChild(this.#state, from);
    const op = this.#state.ops.get(node);
    if (op?.kind !== "child" || op.phase !== "open") return;
    if (status === "completed")
      this.events.push(event("child.completed", { node }, {}, output === null ? {} : { output }));
    else if (status === "failed") this.events.push(event("child.failed", { node }, { error: error as Failure }));
    else this.events.push(event("child.canceled", { node }, reason === null ? {} : { reason }));
  }

  #nodeEnded({ node: from, attempt, output, error, retryMs, ms }: NodeResult): void {
    const node = callOfChild(this.#state, from);
    const op = this.#state.ops.get(node);
    if (op === undefined || !isDispatched(op) || op.attempt !== attempt || this.#nodesEnded.has(node)) return;
    this.#nodesEnded.add(node);
    if (output !== null) {
      this.events.push(event("step.completed", { node, attempt, outcome: "success" }, { ms }, { output }));
      return;
    }
    const outcome = retryMs === null ? "failed_by_exception" : "reattempted_by_exception";
    const data = { error: error as Failure, ms, ...(retryMs === null ? {} : { retryMs }) };
    this.events.push(event("step.failed", { node, attempt, outcome }, data));
  }

  #childrenEnded({ node: from, completed, failed }: Extract<Command, { type: "children" }>): void {
    const node = callOfChild(this.#state, from);
    const op = this.#state.ops.get(node);
    if (op?.kind !== "map") return;
    let settled = this.#settled.get(node);
    if (settled === undefined) this.#settled.set(node, (settled = { completed: [], failed: [], ended: new Set() }));
    for (const [numbers, ranges] of [
      [settled.completed, completed],
      [settled.failed, failed],
    ] as const) {
      for (const index of indexes(ranges)) {
        if (op.ended.has(index) || settled.ended.has(index)) continue;
        settled.ended.add(index);
        numbers.push(index);
      }
    }
  }

  /** One event per map and decision, however many children have ended. */
  finishMaps(): void {
    for (const [node, { completed, failed }] of this.#settled) {
      if (completed.length + failed.length === 0) continue;
      this.events.push(event("map.settled", { node }, { completed: rangesOf(completed), failed: rangesOf(failed) }));
    }
  }

  /** Fires what is due, in the order in which it became due. Time stands still for a paused run, but for its recheck. */
  passTime(now: number): void {
    if (this.#ended || this.#cancelRequested) return;
    if (this.#paused !== null) {
      if (this.#paused.recheckAt === null || this.#paused.recheckAt > now) return;
      this.#resumeBy("recheck");
    }
    for (let timer = this.#timers[0]; timer !== undefined && timer.dueAt <= now; timer = this.#timers[0]) {
      this.#timers.shift();
      if (timer.wait === null) {
        this.events.push(event("timer.fired", { node: timer.key }));
      } else if (this.#waits.includes(timer.wait)) {
        this.#waits.splice(this.#waits.indexOf(timer.wait), 1);
        this.events.push(event("wait.timed_out", { node: timer.key }));
      }
    }
    if (this.#reattemptAt !== null && this.#reattemptAt <= now) {
      this.#reattemptAt = null;
      this.events.push(event("run.woken", {}));
    }
    this.#failIfOverdue(now);
  }

  #failIfOverdue(now: number): void {
    const { deadlineAt, startedAt } = this.#state;
    if (deadlineAt === null || deadlineAt > now) return;
    this.#ended = true;
    const allowed = deadlineAt - (startedAt ?? deadlineAt);
    const error: Failure = {
      name: "TimeoutError",
      code: "TIMEOUT",
      message: `The run did not finish within its time limit of ${allowed} ms.`,
    };
    this.events.push(event("run.failed", {}, { error }));
  }
}

function blockedTwice(
  step: string,
  first: string,
  second: string,
): { readonly reason: string; readonly error: Failure } {
  const code = step === "" ? "Its code" : `Step "${step}"`;
  const reason = `${code} blocked the event loop of worker "${first}" and then of worker "${second}" until their leases were over; it is held so that it takes no more of them down. Code that computes for long belongs in a thread. Resume the run when that is mended.`;
  return { reason, error: { name: "QuarantineError", code: "QUARANTINED", message: reason } };
}

/** Whether cancelling has to reach further than the run itself. */
export function hasOpenChildren(state: RunState): boolean {
  for (const op of state.ops.values())
    if (((op.kind === "child" || op.kind === "map") && op.phase === "open") || isDispatched(op)) return true;
  return false;
}
