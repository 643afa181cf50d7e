/**
 * What a new run takes over from one that has ended: all that was done for good, and nothing that was only begun. The new
 * log begins with it. What is made again is named, with the keys that it is recognised by.
 */
import { isCompensation } from "./compensation.js";
import { type EffectiveLog, effectiveLogOf } from "./effective-log.js";
import { dataOf, type NewEvent, newEvent, type StoredEvent } from "./event.js";
import { fold } from "./fold.js";
import { isCompensationStarted } from "./lineage.js";
import { type Range, rangesOf } from "./ranges.js";
import type { MapOp, Op, RunState } from "./state.js";
import { childNode, outerStep } from "./step-key.js";
import type { AdoptedChildren, ChildrenOrigin, EventData } from "./stored-schema.js";

export interface ForkOptions {
  /** The run that has ended, and its whole log. */
  readonly fromRunId: string;
  readonly fromLog: readonly StoredEvent[];
  /** The new run, and what its log has already: signals may have come before it began. */
  readonly toRunId: string;
  readonly toLog: readonly StoredEvent[];
  /** Under which name the code records what it does when the run fails; null: its workflow has no such thing. */
  readonly onFailure: string | null;
}

export interface Fork {
  readonly events: readonly NewEvent[];
  /** Whether the progress of this step, and its cursor, are still true. */
  keepsCursor(node: string): boolean;
}

export function createFork(options: ForkOptions): Fork {
  const builder = new ForkBuilder(options);
  return {
    events: builder.buildEvents(),
    keepsCursor: (node) => !isCompensationStarted(builder.state, outerStep(node)),
  };
}

class ForkBuilder {
  readonly state: RunState;
  readonly #options: ForkOptions;
  readonly #effectiveLog: EffectiveLog;
  readonly #hasImportedGraph: boolean;
  readonly #newRunSignalKeys: ReadonlySet<string> | null;
  /** Steps in which a retry was canceled: they have ended, and are not done. */
  readonly #canceledSteps: ReadonlySet<string | null>;

  constructor(options: ForkOptions) {
    this.#options = options;
    this.#effectiveLog = effectiveLogOf(options.fromLog);
    this.state = this.#effectiveLog.state;
    this.#newRunSignalKeys = fold(options.toLog).signalKeys;
    this.#canceledSteps = new Set(
      this.#effectiveLog.events.filter(({ type }) => type === "step.canceled").map(({ node }) => node),
    );
    this.#hasImportedGraph = options.toLog.some(({ type }) => type === "dag.imported");
  }

  buildEvents(): NewEvent[] {
    const copies: NewEvent[] = [];
    const newSeqs = new Map<number, number>();
    if (this.state.startedAt === null) copies.push(this.#forkedEvent());
    for (const source of this.#effectiveLog.events) {
      const [first, ...more] = this.#copyEvent(source, newSeqs);
      if (first === undefined) continue;
      copies.push(first);
      // Waits name the signals that they were given by their numbers, which are those of the new log.
      newSeqs.set(source.seq, this.#options.toLog.length + copies.length);
      copies.push(...more);
    }
    return copies;
  }

  #copyEvent(source: StoredEvent, newSeqs: ReadonlyMap<number, number>): NewEvent[] {
    const { seq, at: _at, ...copy } = source;
    switch (copy.type) {
      case "run.started": {
        // It begins when it begins.
        const { startedAt: _began, ...rest } = dataOf(copy, "run.started");
        return [newEvent("run.started", {}, rest), this.#forkedEvent()];
      }
      case "signal.received":
        return this.#effectiveLog.consumedSignals.has(seq) || this.#wasSentToNewRun(source) ? [] : [copy];
      case "dag.imported":
        return this.#hasImportedGraph ? [] : [copy];
      case "shape.changed":
      case "input.checked":
      case "run.moved":
        return [copy];
      case "run.resumed": {
        // What an operator said about changed code holds for the records that are taken over.
        const { accept, renamed } = dataOf(copy, "run.resumed");
        const changes = { ...(accept && { accept }), ...(renamed && { renamed }) };
        return Object.keys(changes).length === 0 ? [] : [newEvent("run.resumed", {}, { by: "operator", ...changes })];
      }
    }
    if (copy.node === null || !this.#isKept(copy.node)) return [];
    // Behind a pause of the code itself, which it passes.
    if (copy.type === "run.paused" && this.state.ops.get(copy.node)?.kind === "pause")
      return [copy, newEvent("run.resumed", {}, { by: "operator" })];
    if (copy.type.startsWith("run.")) return [];
    if (copy.type.startsWith("map."))
      return this.#effectiveLog.settledAtSeq.get(copy.node) === seq ? [this.#settledMapEvent(copy.node)] : [];
    if (copy.type !== "wait.completed") return [copy];
    if (this.#effectiveLog.withdrawnKeys.has(copy.node)) return [];
    const signals = dataOf(copy, "wait.completed").signals.map((signal) => newSeqs.get(signal) as number);
    return [newEvent("wait.completed", { node: copy.node }, { signals })];
  }

  /** It was sent to the new run as well, with the same key, and has not been consumed here. */
  #wasSentToNewRun(received: StoredEvent): boolean {
    if (this.#newRunSignalKeys === null) return false;
    const { key } = dataOf(received, "signal.received");
    if (key === undefined || !this.#newRunSignalKeys.has(key)) return false;
    return this.state.pendingSignals.some(({ seq }) => seq === received.seq);
  }

  /** Parts of a step that was undone are not kept: it begins at its beginning. Those of an unfinished one are, as by its next attempt. */
  #isKept(node: string): boolean {
    const step = outerStep(node);
    if (isCompensation(step) || step === this.#options.onFailure || isCompensationStarted(this.state, step))
      return false;
    const op = this.state.ops.get(node);
    return op !== undefined && this.#isDone(node, op);
  }

  #isDone(node: string, op: Op): boolean {
    switch (op.kind) {
      case "step":
        return op.phase === "completed" || (op.phase === "skipped" && !this.#canceledSteps.has(node));
      case "timer":
        return op.phase === "fired" || this.#effectiveLog.withdrawnKeys.has(node);
      case "wait":
        return op.phase === "completed" || op.phase === "timed_out" || this.#effectiveLog.withdrawnKeys.has(node);
      case "child":
        return op.phase === "completed";
      case "map":
        return op.phase === "settled";
      default:
        return true;
    }
  }

  /** The results of a map lie with its children: the new log says whose children they are. */
  #settledMapEvent(node: string): NewEvent {
    const { workflow, count, concurrency, tolerate, adopted, failedIndexes } = this.state.ops.get(node) as MapOp;
    const ownIndexes = indexesNotAdopted(adopted ?? [], count);
    const from: AdoptedChildren[] = [...(adopted ?? [])];
    if (ownIndexes.length > 0) from.push({ ...this.#originOf(node), indexes: ownIndexes });
    const all = { spawned: count, released: count, from, failed: rangesOf(failedIndexes) };
    return newEvent("map.started", { node }, { workflow, count, concurrency, tolerate, ...all });
  }

  #originOf(node: string): ChildrenOrigin {
    return { run: this.#options.fromRunId, node: childNode(this.state, node) };
  }

  #forkedEvent(): NewEvent {
    const { fromRunId } = this.#options;
    const roots = this.#keyRunIds();
    const children = this.#childrenOrigins();
    const data: EventData["run.forked"] = {
      from: fromRunId,
      root: this.state.lineage?.rootRunId ?? fromRunId,
      redo: this.#callsToRedo(),
    };
    if (roots.size > 0) data.keyRunIds = Object.fromEntries(roots);
    if (children.size > 0) data.children = Object.fromEntries(children);
    const hashes = this.#undoneHashes();
    if (hashes.size > 0) data.hashes = Object.fromEntries(hashes);
    return newEvent("run.forked", {}, data);
  }

  /** Each time something is undone, the next to do it again has a key of its own. */
  #keyRunIds(): Map<string, string> {
    const keyRunIds = new Map(this.state.lineage?.keyRunIds);
    for (const key of this.state.ops.keys()) {
      if (isCompensationStarted(this.state, key)) keyRunIds.set(key, this.#options.toRunId);
    }
    return keyRunIds;
  }

  /** What was done once more may have been undone once more: each time it had another ancestry. */
  #undoneHashes(): Map<string, string[]> {
    const { ops, lineage } = this.state;
    const undoneHashes = new Map<string, string[]>();
    for (const [key, hashes] of lineage?.undoneHashes ?? []) undoneHashes.set(key, [...hashes]);
    for (const [key, op] of ops) {
      if (op.kind !== "step" || op.ancestryHash === null || this.#isKept(key)) continue;
      undoneHashes.set(key, [...(undoneHashes.get(key) ?? []), op.ancestryHash]);
    }
    return undoneHashes;
  }

  #childrenOrigins(): Map<string, ChildrenOrigin[]> {
    const { ops, lineage } = this.state;
    const children = new Map<string, ChildrenOrigin[]>();
    for (const key of new Set([...(lineage?.childrenOrigins.keys() ?? []), ...ops.keys()])) {
      const op = ops.get(key);
      if (isCompensationStarted(this.state, outerStep(key)) || this.#isKept(key)) continue;
      const origins = [...(lineage?.childrenOrigins.get(key) ?? [])];
      if (op?.kind === "child" || op?.kind === "map") origins.unshift(this.#originOf(key));
      if (origins.length > 0) children.set(key, origins);
    }
    return children;
  }

  #callsToRedo(): string[] {
    const { ops, callsToRedo } = this.state;
    const calls = new Set([...(callsToRedo ?? []), ...ops.keys()]);
    const { onFailure } = this.#options;
    return [...calls].filter((key) => {
      const step = outerStep(key);
      return !isCompensation(step) && step !== onFailure && !this.#isKept(key);
    });
  }
}

function indexesNotAdopted(adopted: readonly AdoptedChildren[], count: number): Range[] {
  const remaining: Range[] = [];
  let next = 0;
  for (const [first, last] of adopted.flatMap(({ indexes }) => indexes).sort(([a], [b]) => a - b)) {
    if (next < first) remaining.push([next, first - 1]);
    next = last + 1;
  }
  if (next < count) remaining.push([next, count - 1]);
  return remaining;
}
