/**
 * What a new run takes over from one that has ended: all that was done for good, and nothing that was only begun. The new
 * log begins with it. What is made again is named, with the keys that it is recognised by.
 */
import { isCompensation } from "./compensation.js";
import { dataOf, event, type NewEvent, type StoredEvent } from "./event.js";
import { fold } from "./fold.js";
import { isUndone } from "./lineage.js";
import { type LogInForce, logInForce } from "./log-in-force.js";
import { type Range, rangesOf } from "./ranges.js";
import type { MapOp, Op, RunState } from "./state.js";
import { childNode, outerStep } from "./step-key.js";
import type { Adopted, EventData, Place } from "./stored-schema.js";

export interface ForkOptions {
  /** The run that has ended, and its whole log. */
  readonly from: string;
  readonly log: readonly StoredEvent[];
  /** The new run, and what its log has already: signals may have come before it began. */
  readonly to: string;
  readonly own: readonly StoredEvent[];
  /** Under which name the code records what it does when the run fails; null: its workflow has no such thing. */
  readonly onFailure: string | null;
}

export interface Fork {
  readonly events: readonly NewEvent[];
  /** Whether the progress of this step, and its cursor, are still true. */
  keepsCursor(node: string): boolean;
}

export function forkOf(options: ForkOptions): Fork {
  const forking = new Forking(options);
  return { events: forking.events(), keepsCursor: (node) => !isUndone(forking.state, outerStep(node)) };
}

class Forking {
  readonly state: RunState;
  readonly #options: ForkOptions;
  readonly #log: LogInForce;
  readonly #hasOwnGraph: boolean;
  readonly #ownSignalKeys: ReadonlySet<string> | null;
  /** Steps in which a retry was canceled: they have ended, and are not done. */
  readonly #canceled: ReadonlySet<string | null>;

  constructor(options: ForkOptions) {
    this.#options = options;
    this.#log = logInForce(options.log);
    this.state = this.#log.state;
    this.#ownSignalKeys = fold(options.own).signalKeys;
    this.#canceled = new Set(this.#log.events.filter(({ type }) => type === "step.canceled").map(({ node }) => node));
    this.#hasOwnGraph = options.own.some(({ type }) => type === "dag.imported");
  }

  events(): NewEvent[] {
    const copies: NewEvent[] = [];
    const numbers = new Map<number, number>();
    if (this.state.startedAt === null) copies.push(this.#forked());
    for (const one of this.#log.events) {
      const [first, ...more] = this.#copiesOf(one, numbers);
      if (first === undefined) continue;
      copies.push(first);
      // Waits name the signals that they were given by their numbers, which are those of the new log.
      numbers.set(one.seq, this.#options.own.length + copies.length);
      copies.push(...more);
    }
    return copies;
  }

  #copiesOf(one: StoredEvent, numbers: ReadonlyMap<number, number>): NewEvent[] {
    const { seq, at: _at, ...copy } = one;
    switch (copy.type) {
      case "run.started": {
        // It begins when it begins.
        const { began: _began, ...rest } = dataOf(copy, "run.started");
        return [event("run.started", {}, rest), this.#forked()];
      }
      case "signal.received":
        return this.#log.spentSignals.has(seq) || this.#hasComeAgain(one) ? [] : [copy];
      case "dag.imported":
        return this.#hasOwnGraph ? [] : [copy];
      case "shape.changed":
      case "input.checked":
      case "run.moved":
        return [copy];
      case "run.resumed": {
        // What an operator said about changed code holds for the records that are taken over.
        const { accept, renamed } = dataOf(copy, "run.resumed");
        const changes = { ...(accept && { accept }), ...(renamed && { renamed }) };
        return Object.keys(changes).length === 0 ? [] : [event("run.resumed", {}, { by: "operator", ...changes })];
      }
    }
    if (copy.node === null || !this.#isKept(copy.node)) return [];
    // Behind a pause of the code itself, which it passes.
    if (copy.type === "run.paused" && this.state.ops.get(copy.node)?.kind === "pause")
      return [copy, event("run.resumed", {}, { by: "operator" })];
    if (copy.type.startsWith("run.")) return [];
    if (copy.type.startsWith("map."))
      return this.#log.settledBy.get(copy.node) === seq ? [this.#settledMap(copy.node)] : [];
    if (copy.type !== "wait.completed") return [copy];
    if (this.#log.withdrawn.has(copy.node)) return [];
    const signals = dataOf(copy, "wait.completed").signals.map((signal) => numbers.get(signal) as number);
    return [event("wait.completed", { node: copy.node }, { signals })];
  }

  /** It was sent to the new run as well, with the same key, and has not been consumed here. */
  #hasComeAgain(received: StoredEvent): boolean {
    if (this.#ownSignalKeys === null) return false;
    const { key } = dataOf(received, "signal.received");
    if (key === undefined || !this.#ownSignalKeys.has(key)) return false;
    return this.state.signals.some(({ seq }) => seq === received.seq);
  }

  /** Parts of a step that was undone are not kept: it begins at its beginning. Those of an unfinished one are, as by its next attempt. */
  #isKept(node: string): boolean {
    const step = outerStep(node);
    if (isCompensation(step) || step === this.#options.onFailure || isUndone(this.state, step)) return false;
    const op = this.state.ops.get(node);
    return op !== undefined && this.#isDone(node, op);
  }

  #isDone(node: string, op: Op): boolean {
    switch (op.kind) {
      case "step":
        return op.phase === "completed" || (op.phase === "skipped" && !this.#canceled.has(node));
      case "timer":
        return op.phase === "fired" || this.#log.withdrawn.has(node);
      case "wait":
        return op.phase === "completed" || op.phase === "timed out" || this.#log.withdrawn.has(node);
      case "child":
        return op.phase === "completed";
      case "map":
        return op.phase === "settled";
      default:
        return true;
    }
  }

  /** The results of a map lie with its children: the new log says whose children they are. */
  #settledMap(node: string): NewEvent {
    const { workflow, count, concurrency, tolerate, adopted, failed } = this.state.ops.get(node) as MapOp;
    const own = othersThan(adopted ?? [], count);
    const from: Adopted[] = [...(adopted ?? [])];
    if (own.length > 0) from.push({ ...this.#placeOf(node), indexes: own });
    const all = { spawned: count, released: count, from, failed: rangesOf(failed) };
    return event("map.started", { node }, { workflow, count, concurrency, tolerate, ...all });
  }

  #placeOf(node: string): Place {
    return { run: this.#options.from, node: childNode(this.state, node) };
  }

  #forked(): NewEvent {
    const { from } = this.#options;
    const roots = this.#roots();
    const children = this.#children();
    const data: EventData["run.forked"] = { from, root: this.state.lineage?.root ?? from, redo: this.#redo() };
    if (roots.size > 0) data.roots = Object.fromEntries(roots);
    if (children.size > 0) data.children = Object.fromEntries(children);
    const hashes = this.#lostHashes();
    if (hashes.size > 0) data.hashes = Object.fromEntries(hashes);
    return event("run.forked", {}, data);
  }

  /** Each time something is undone, the next to do it again has a key of its own. */
  #roots(): Map<string, string> {
    const roots = new Map(this.state.lineage?.roots);
    for (const key of this.state.ops.keys()) {
      if (isUndone(this.state, key)) roots.set(key, this.#options.to);
    }
    return roots;
  }

  /** What was done once more may have been undone once more: each time it had another ancestry. */
  #lostHashes(): Map<string, string[]> {
    const { ops, lineage } = this.state;
    const lost = new Map<string, string[]>();
    for (const [key, hashes] of lineage?.hashes ?? []) lost.set(key, [...hashes]);
    for (const [key, op] of ops) {
      if (op.kind !== "step" || op.hash === null || this.#isKept(key)) continue;
      lost.set(key, [...(lost.get(key) ?? []), op.hash]);
    }
    return lost;
  }

  #children(): Map<string, Place[]> {
    const { ops, lineage } = this.state;
    const children = new Map<string, Place[]>();
    for (const key of new Set([...(lineage?.children.keys() ?? []), ...ops.keys()])) {
      const op = ops.get(key);
      if (isUndone(this.state, outerStep(key)) || this.#isKept(key)) continue;
      const places = [...(lineage?.children.get(key) ?? [])];
      if (op?.kind === "child" || op?.kind === "map") places.unshift(this.#placeOf(key));
      if (places.length > 0) children.set(key, places);
    }
    return children;
  }

  #redo(): string[] {
    const { ops, redo } = this.state;
    const asked = new Set([...(redo ?? []), ...ops.keys()]);
    const { onFailure } = this.#options;
    return [...asked].filter((key) => {
      const step = outerStep(key);
      return !isCompensation(step) && step !== onFailure && !this.#isKept(key);
    });
  }
}

function othersThan(adopted: readonly Adopted[], count: number): Range[] {
  const others: Range[] = [];
  let next = 0;
  for (const [first, last] of adopted.flatMap(({ indexes }) => indexes).sort(([a], [b]) => a - b)) {
    if (next < first) others.push([next, first - 1]);
    next = last + 1;
  }
  if (next < count) others.push([next, count - 1]);
  return others;
}
