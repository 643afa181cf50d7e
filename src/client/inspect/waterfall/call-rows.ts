/** Collects the rows of calls that are no steps (sleeps, waits for signals, children, maps, branches) from a window of a log. */
import { attemptRunId, childRunId } from "../../../core/naming/ids.js";
import { jobWorkflow } from "../../../core/naming/route.js";
import { dataOf, type StoredEvent } from "../../../core/run/event.js";
import { childNode, scopeOf } from "../../../core/run/step-key.js";
import { MapChildren } from "./map-children.js";
import { type ChildLink, type MutableSpan, newSpan, type RowKind, type RowState, splitAtDue } from "./rows.js";

/** A row that is being collected. */
export interface CallRow {
  readonly key: string;
  readonly kind: RowKind;
  readonly firstSeq: number;
  readonly spans: MutableSpan[];
  detail: string | null;
  child: ChildLink | null;
  map: MapChildren | null;
}

type WaitKind = "sleep" | "signal" | "child" | "map";

interface WaitEnd {
  readonly state?: RowState;
  /** When the wait was over; the rest of the time it was in the queue. */
  readonly dueAt?: number | null;
  readonly outcome?: string | null;
}

interface WindowFacts {
  readonly runId: string;
  /** When the first event of the window was committed. */
  readonly startAt: number;
  /** Whether the window begins with the first event of the log. */
  readonly isFromStart: boolean;
}

export class CallRows {
  readonly rows = new Map<string, CallRow>();
  /** The run that executes a node's job, by node. */
  readonly dispatched = new Map<string, ChildLink>();
  readonly #window: WindowFacts;
  /** The spans that have not ended, by call. */
  readonly #open = new Map<string, MutableSpan>();
  readonly #signalAt = new Map<number, number>();
  #generation = 0;
  readonly #stepGenerations = new Map<string, number>();

  constructor(window: WindowFacts) {
    this.#window = window;
  }

  addEvent(event: StoredEvent): void {
    const key = event.node;
    if (event.type === "signal.received") this.#signalAt.set(event.seq, event.at);
    else if (event.type === "run.moved") this.#startOver(event.at);
    else if (event.type === "run.reattempted" && dataOf(event, "run.reattempted").rewind) this.#startOver(event.at);
    else if (key !== null) this.#onCall(event, key);
  }

  /** Ends what the run no longer waits for, because it has ended. */
  endAll(at: number): void {
    for (const key of [...this.#open.keys()]) this.#close(key, at, { state: "canceled" });
  }

  /** Waits that were due before `until` and have not ended are in the queue since. */
  splitOverdue(until: number): void {
    for (const [key, span] of this.#open) {
      const spans = this.rows.get(key)?.spans as MutableSpan[];
      if (span.waitsFor === "sleep") spans.splice(spans.indexOf(span), 1, ...splitAtDue(span, span.dueAt, until));
    }
  }

  #onCall(event: StoredEvent, key: string): void {
    const { at } = event;
    switch (event.type) {
      case "timer.started": {
        const { ms = 0, until = at + ms } = dataOf(event, "timer.started");
        return void this.#begin(event, key, "sleep", until);
      }
      case "wait.started": {
        const { names, timeoutMs } = dataOf(event, "wait.started");
        const row = this.#begin(event, key, "signal", timeoutMs === undefined ? null : at + timeoutMs);
        row.detail = names.join(", ");
        return;
      }
      case "child.started":
        this.#begin(event, key, "child", null).child = dataOf(event, "child.started");
        return;
      case "map.started":
        return this.#onMapStarted(event, key);
      case "timer.fired":
        return this.#end(event, key, "sleep", { dueAt: this.#open.get(key)?.dueAt ?? null });
      case "wait.completed":
        return this.#end(event, key, "signal", { dueAt: this.#receivedAt(dataOf(event, "wait.completed").signals) });
      case "wait.timed_out":
        return this.#end(event, key, "signal", { dueAt: this.#open.get(key)?.dueAt ?? null, outcome: "timed_out" });
      case "wait.withdrawn":
        return this.#close(key, at, { state: "canceled" });
      case "child.completed":
      case "child.failed":
      case "child.canceled":
        return this.#end(event, key, "child", { state: event.type.slice("child.".length) as RowState });
      case "map.spawned":
      case "map.released":
      case "map.settled":
        return this.#onMapEvent(event, key);
      case "branch.chosen": {
        const row = this.#rowOf(event, key, "branch");
        row.detail = dataOf(event, "branch.chosen").choice;
        row.spans.push(newSpan({ kind: "execution", state: "completed", from: at, to: at }));
        return;
      }
      default:
        return this.#onStep(event, key);
    }
  }

  #onStep(event: StoredEvent, key: string): void {
    if (event.type === "node.dispatched") {
      const { job } = dataOf(event, "node.dispatched");
      const runId = this.#idOf((node) => attemptRunId(this.#window.runId, node, event.attempt ?? 1), key);
      this.dispatched.set(key, { runId, workflow: jobWorkflow(job) });
    } else if (event.type === "step.reattempted" && dataOf(event, "step.reattempted").rewind === true) {
      this.#stepGenerations.set(key, (this.#stepGenerations.get(key) ?? 0) + 1);
      this.#withdraw(scopeOf(key), event.at);
    } else if (["step.completed", "step.skipped", "step.canceled"].includes(event.type))
      this.#withdraw(scopeOf(key), event.at);
  }

  /** The ids of children contain how often the code has started over, which only a log from its beginning tells. */
  #idOf(compute: (node: string) => string, key: string): string | null {
    if (!this.#window.isFromStart) return null;
    return compute(childNode({ generation: this.#generation, stepGenerations: this.#stepGenerations }, key));
  }

  #onMapStarted(event: StoredEvent, key: string): void {
    const data = dataOf(event, "map.started");
    const node = this.#idOf((name) => name, key);
    const row = this.#begin(event, key, "map", null);
    row.child = { runId: null, workflow: data.workflow };
    const idOf = (index: number) => (node === null ? null : childRunId(this.#window.runId, node, index));
    row.map = new MapChildren(data, idOf, event.at);
    this.#closeMapIfEnded(row, event.at);
  }

  #onMapEvent(event: StoredEvent, key: string): void {
    const row = this.rows.get(key) ?? this.#beginCut(event, key, "map");
    row.map?.addEvent(event);
    this.#closeMapIfEnded(row, event.at);
  }

  #closeMapIfEnded(row: CallRow, at: number): void {
    const state = row.map?.state ?? "waiting";
    if (state !== "waiting") this.#close(row.key, at, { state });
  }

  /** When the last of these signals arrived, if that is in the window. */
  #receivedAt(signals: readonly number[]): number | null {
    const instants = signals.flatMap((seq) => this.#signalAt.get(seq) ?? []);
    return instants.length === 0 ? null : Math.max(...instants);
  }

  #startOver(at: number): void {
    this.#generation += 1;
    this.endAll(at);
  }

  #withdraw(scope: string, at: number): void {
    for (const key of [...this.#open.keys()]) if (key.startsWith(scope)) this.#close(key, at, { state: "canceled" });
  }

  #rowOf({ seq }: StoredEvent, key: string, kind: RowKind): CallRow {
    let row = this.rows.get(key);
    if (row === undefined) {
      row = { key, kind, firstSeq: seq, spans: [], detail: null, child: null, map: null };
      this.rows.set(key, row);
    }
    return row;
  }

  #begin(event: StoredEvent, key: string, kind: WaitKind, dueAt: number | null): CallRow {
    const row = this.#rowOf(event, key, kind);
    const span = newSpan({ kind: "wait", waitsFor: kind, state: "waiting", from: event.at, dueAt });
    row.spans.push(span);
    this.#open.set(key, span);
    return row;
  }

  /** Begins a wait whose start is before the window. */
  #beginCut(event: StoredEvent, key: string, kind: WaitKind): CallRow {
    const row = this.#begin({ ...event, at: this.#window.startAt }, key, kind, null);
    (this.#open.get(key) as MutableSpan).isCut = true;
    return row;
  }

  /** Ends a wait, which may have begun before the window. */
  #end(event: StoredEvent, key: string, kind: WaitKind, end: WaitEnd): void {
    if (!this.#window.isFromStart && !this.rows.has(key)) this.#beginCut(event, key, kind);
    this.#close(key, event.at, end);
  }

  #close(key: string, at: number, { state = "completed", dueAt = null, outcome = null }: WaitEnd): void {
    const span = this.#open.get(key);
    if (span === undefined) return;
    this.#open.delete(key);
    const spans = (this.rows.get(key) as CallRow).spans;
    Object.assign(span, { to: at, state, outcome });
    spans.splice(spans.indexOf(span), 1, ...splitAtDue(span, dueAt, at));
  }
}
