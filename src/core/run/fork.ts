/**
 * The fork of a log: the events that a retry inherits from the run that it retries. The retry inherits calls that were
 * completed, and none that were only started. The event `run.forked` lists the calls that the retry makes again.
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
  /** The id of the ended run that is retried. */
  readonly fromRunId: string;
  readonly fromLog: readonly StoredEvent[];
  /** The id of the retry. */
  readonly toRunId: string;
  /** The log of the retry, which may have received signals before it starts. */
  readonly toLog: readonly StoredEvent[];
  /** The name of the step under which `onFailure` is recorded; null when the workflow has no `onFailure`. */
  readonly onFailure: string | null;
}

export interface Fork {
  /** The events to append to the log of the retry. */
  readonly events: readonly NewEvent[];
  /** Whether the retry inherits the cursor and the progress of this step. */
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
  /** The steps that have canceled the run. They have ended, but the retry executes them again. */
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
      // Events of waits refer to signals by their numbers, which differ in the new log.
      newSeqs.set(source.seq, this.#options.toLog.length + copies.length);
      copies.push(...more);
    }
    return copies;
  }

  #copyEvent(source: StoredEvent, newSeqs: ReadonlyMap<number, number>): NewEvent[] {
    const { seq, at: _at, ...copy } = source;
    switch (copy.type) {
      case "run.started": {
        // `startedAt` is not copied, because the retry has a start time of its own.
        const { startedAt: _startedAt, ...rest } = dataOf(copy, "run.started");
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
        // The code changes that an operator accepted for the retried run also apply to the inherited events.
        const { accept, renamed } = dataOf(copy, "run.resumed");
        const changes = { ...(accept && { accept }), ...(renamed && { renamed }) };
        return Object.keys(changes).length === 0 ? [] : [newEvent("run.resumed", {}, { by: "operator", ...changes })];
      }
    }
    if (copy.node === null || !this.#isKept(copy.node)) return [];
    // The code has paused the run with `ctx.pause()`. The retry is not paused there, but continues after that call.
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

  /**
   * Whether this signal is pending, and a signal with the same key was also sent to the retry. It would arrive there twice.
   */
  #wasSentToNewRun(receivedEvent: StoredEvent): boolean {
    if (this.#newRunSignalKeys === null) return false;
    const { key } = dataOf(receivedEvent, "signal.received");
    if (key === undefined || !this.#newRunSignalKeys.has(key)) return false;
    return this.state.pendingSignals.some(({ seq }) => seq === receivedEvent.seq);
  }

  /**
   * Whether the retry inherits the call. Calls of a compensated step's body are not inherited, because the step starts
   * over. Completed calls of an unfinished step's body are inherited, because another attempt at the step would reuse them
   * too.
   */
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

  /** The results of a map are stored in the rows of its children, so the event in the new log refers to these children. */
  #settledMapEvent(node: string): NewEvent {
    const { workflow, count, concurrency, tolerate, adopted, failedIndexes } = this.state.ops.get(node) as MapOp;
    const ownIndexes = indexesNotAdopted(adopted ?? [], count);
    const from: AdoptedChildren[] = [...(adopted ?? [])];
    if (ownIndexes.length > 0) from.push({ ...this.#originOf(node), indexes: ownIndexes });
    const children = { spawned: count, released: count, from, failed: rangesOf(failedIndexes) };
    return newEvent("map.started", { node }, { workflow, count, concurrency, tolerate, ...children });
  }

  #originOf(node: string): ChildrenOrigin {
    return { run: this.#options.fromRunId, node: childNode(this.state, node) };
  }

  #forkedEvent(): NewEvent {
    const { fromRunId } = this.#options;
    const keyRunIds = this.#keyRunIds();
    const children = this.#childrenOrigins();
    const data: EventData["run.forked"] = {
      from: fromRunId,
      root: this.state.lineage?.rootRunId ?? fromRunId,
      redo: this.#callsToRedo(),
    };
    if (keyRunIds.size > 0) data.keyRunIds = Object.fromEntries(keyRunIds);
    if (children.size > 0) data.children = Object.fromEntries(children);
    const hashes = this.#undoneHashes();
    if (hashes.size > 0) data.hashes = Object.fromEntries(hashes);
    return newEvent("run.forked", {}, data);
  }

  /**
   * By step: the run id in its idempotency key. A compensated step gets a new key, which begins with the id of the retry.
   */
  #keyRunIds(): Map<string, string> {
    const keyRunIds = new Map(this.state.lineage?.keyRunIds);
    for (const key of this.state.ops.keys()) {
      if (isCompensationStarted(this.state, key)) keyRunIds.set(key, this.#options.toRunId);
    }
    return keyRunIds;
  }

  /** By step: several hashes, because the step may have been executed and undone in several runs of the lineage. */
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
    const originsByKey = new Map<string, ChildrenOrigin[]>();
    for (const key of new Set([...(lineage?.childrenOrigins.keys() ?? []), ...ops.keys()])) {
      const op = ops.get(key);
      if (isCompensationStarted(this.state, outerStep(key)) || this.#isKept(key)) continue;
      const origins = [...(lineage?.childrenOrigins.get(key) ?? [])];
      if (op?.kind === "child" || op?.kind === "map") origins.unshift(this.#originOf(key));
      if (origins.length > 0) originsByKey.set(key, origins);
    }
    return originsByKey;
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

function indexesNotAdopted(adoptedChildren: readonly AdoptedChildren[], count: number): Range[] {
  const remainingRanges: Range[] = [];
  let nextIndex = 0;
  for (const [first, last] of adoptedChildren.flatMap(({ indexes }) => indexes).sort(([a], [b]) => a - b)) {
    if (nextIndex < first) remainingRanges.push([nextIndex, first - 1]);
    nextIndex = last + 1;
  }
  if (nextIndex < count) remainingRanges.push([nextIndex, count - 1]);
  return remainingRanges;
}
