/** The waterfall of a run: what it spent its time on, as rows of spans, computed from a window of its log. */
import type { StoredEvent } from "../../../core/run/event.js";
import { scopeSeparator } from "../../../core/run/step-key.js";
import { isTerminalEvent } from "../../../core/run/terminal-event.js";
import type { NextStep } from "../../../core/run/waiting.js";
import { executionsOf } from "../executions.js";
import type { PlannedNode } from "../nodes.js";
import { type CallRow, CallRows } from "./call-rows.js";
import { flattenRows, sortByStart } from "./row-groups.js";
import { type RowNode, type RowState, startOf, type WaterfallRow, type WaterfallSpan } from "./rows.js";
import { type RunFacts, RunSpans } from "./run-row.js";
import { AttemptNotes, type StepRow, stepRowsOf } from "./step-rows.js";
import { nodesToCome } from "./upcoming.js";

export interface WaterfallInput {
  readonly run: RunFacts;
  /** The window of the log, in order; it may end with the terminal event. */
  readonly events: readonly StoredEvent[];
  /** Whether the log has events after the window. The waterfall then shows the run as of the last event. */
  readonly hasLater: boolean;
  /** The instant of the store's clock. */
  readonly now: number;
  /** The start time of a run that has not started. */
  readonly dueAt: number | null;
  /** The next step of a chain, if the log has no event of it yet. */
  readonly next: NextStep | null;
  /** The declared nodes; null for a function. */
  readonly declaredNodes: readonly PlannedNode[] | null;
  /** The group whose members are returned; null returns all rows. */
  readonly expand: string | null;
}

export interface Waterfall {
  readonly now: number;
  readonly from: number;
  readonly to: number;
  /** The numbers of the first and last event of the window; null if the window is empty. */
  readonly firstEvent: number | null;
  readonly lastEvent: number | null;
  readonly hasEarlier: boolean;
  readonly hasLater: boolean;
  readonly rows: readonly WaterfallRow[];
}

export function waterfallOf(input: WaterfallInput): Waterfall {
  const { run, events, hasLater, now } = input;
  const [first, last] = [events[0], events.at(-1)];
  const hasEarlier = (first?.seq ?? 1) > 1;
  const until = hasLater && last !== undefined ? last.at : (run.finishedAt ?? now);
  const rows = flattenRows(new TreeBuilder(input, { isFromStart: !hasEarlier, until }).build(), input.expand);
  const from = Math.min(hasEarlier ? (first?.at ?? until) : run.createdAt, until, ...rows.map(startOf));
  const window = { firstEvent: first?.seq ?? null, lastEvent: last?.seq ?? null, hasEarlier, hasLater };
  return { now, from, to: Math.max(from, until), ...window, rows };
}

interface Window {
  readonly isFromStart: boolean;
  /** The instant up to which the waterfall goes. */
  readonly until: number;
}

class TreeBuilder {
  readonly #input: WaterfallInput;
  readonly #window: Window;
  readonly #runSpans: RunSpans;
  readonly #calls: CallRows;
  readonly #notes = new AttemptNotes();
  readonly #declared: ReadonlyMap<string, PlannedNode>;

  constructor(input: WaterfallInput, window: Window) {
    const { run, events, dueAt, declaredNodes } = input;
    this.#input = input;
    this.#window = window;
    const startAt = events[0]?.at ?? run.createdAt;
    this.#runSpans = new RunSpans(run, { ...window, startAt, dueAt });
    this.#calls = new CallRows({ runId: run.id, startAt, isFromStart: window.isFromStart });
    this.#declared = new Map(declaredNodes?.map((node) => [node.id ?? node.name, node]));
    for (const event of events) this.#addEvent(event);
    if (!events.some(isTerminalEvent) && !this.#runSpans.isPaused) this.#calls.splitOverdue(window.until);
  }

  #addEvent(event: StoredEvent): void {
    this.#runSpans.addEvent(event);
    this.#calls.addEvent(event);
    this.#notes.addEvent(event);
    if (!isTerminalEvent(event)) return;
    this.#runSpans.endAll(event.at);
    this.#calls.endAll(event.at);
  }

  /** The run itself, its calls by their starts, and what is still to come. */
  build(): RowNode[] {
    const steps = this.#stepRows();
    const children = new Map<string, RowNode[]>();
    const topRows: (StepRow | CallRow)[] = [];
    for (const row of [...this.#calls.rows.values(), ...steps.values()]) {
      const parent = this.#parentOf(row.key, steps);
      if (parent === null) topRows.push(row);
      else if (!children.get(parent)?.push(this.#nodeOf(row, parent, [])))
        children.set(parent, [this.#nodeOf(row, parent, [])]);
    }
    const nodes = topRows.map((row) => this.#nodeOf(row, null, sortByStart(children.get(row.key) ?? [])));
    return [this.#runNode(), ...sortByStart(nodes), ...this.#nodesToCome(steps)];
  }

  #stepRows(): Map<string, StepRow> {
    const { run, events, next } = this.#input;
    const rows = stepRowsOf(executionsOf(run.id, events, next), {
      notes: this.#notes,
      createdAt: run.createdAt,
      lastEventAt: events.at(-1)?.at ?? run.createdAt,
      lastSeq: events.at(-1)?.seq ?? 0,
      until: this.#window.until,
      isPaused: this.#runSpans.isPaused,
    });
    // The body of a step may have more calls than a window has events, so that the window has none of the step itself.
    for (const { key, firstSeq } of [...this.#calls.rows.values(), ...rows.values()]) {
      const step = this.#declaredStepOf(key);
      if (step === null || rows.has(step) || this.#calls.rows.has(step)) continue;
      rows.set(step, { key: step, kind: "step", firstSeq, spans: [], state: "executing", attempts: 0 });
    }
    return rows;
  }

  /** The declared step whose body made the call; null for a call of the handler. */
  #declaredStepOf(key: string): string | null {
    const separator = key.indexOf(scopeSeparator);
    return separator > 0 && this.#declared.has(key.slice(0, separator)) ? key.slice(0, separator) : null;
  }

  /** The names of a function's steps may contain slashes, so a prefix is a parent only if it is a step itself. */
  #parentOf(key: string, steps: ReadonlyMap<string, StepRow>): string | null {
    const separator = key.indexOf(scopeSeparator);
    const prefix = key.slice(0, Math.max(0, separator));
    const isStep = this.#input.declaredNodes !== null || prefix.includes("#");
    return separator > 0 && isStep && steps.has(prefix) ? prefix : null;
  }

  #nodeOf(row: StepRow | CallRow, parent: string | null, children: readonly RowNode[]): RowNode {
    const { key, kind, firstSeq, spans } = row;
    const callName =
      parent === null ? (this.#declared.get(key)?.name ?? key) : key.slice(parent.length + scopeSeparator.length);
    const name = kind === "signal" ? signalName(callName, "detail" in row ? row.detail : null) : callName;
    const isBranch = parent === null && this.#declared.get(key)?.kind === "branch";
    const common = { id: key, node: key, name, kind: isBranch ? "branch" : kind, depth: 0, spans } as const;
    if (!("map" in row)) {
      const child = this.#calls.dispatched.get(key) ?? null;
      const fields = { state: row.state, attempts: row.attempts, detail: null, child, group: null };
      return { row: { ...common, ...fields }, firstSeq, children };
    }
    const state = stateOfSpans(spans);
    const { detail, child, map } = row;
    const group = map?.summary(`map:${key}`) ?? null;
    const members = map === null ? {} : { members: () => map.members(key, spans.at(-1)?.to ?? null) };
    return { row: { ...common, state, attempts: 0, detail, child, group }, firstSeq, children, ...members };
  }

  #runNode(): RowNode {
    const { run } = this.#input;
    const common = { node: null, kind: "run", depth: 0, attempts: 0, detail: null, child: null, group: null } as const;
    const row = { ...common, id: "run", name: run.workflow, state: this.#runState(), spans: this.#runSpans.spans };
    return { row, firstSeq: 0, children: [] };
  }

  /** The status at the end of the window. */
  #runState(): RowState {
    const { run, events, hasLater } = this.#input;
    if (!hasLater) return run.status as RowState;
    if (this.#runSpans.isPaused) return "paused";
    return events.length > 0 || !this.#window.isFromStart ? "running" : "pending";
  }

  #nodesToCome(steps: ReadonlyMap<string, StepRow>): RowNode[] {
    const { declaredNodes, run, hasLater, events } = this.#input;
    if (declaredNodes === null || (run.finishedAt !== null && !hasLater)) return [];
    const states = new Map<string, RowState>([...steps].map(([key, { state }]) => [key, state]));
    for (const key of this.#calls.rows.keys()) states.set(key, "completed");
    return nodesToCome(declaredNodes, states, this.#window.isFromStart, (events.at(-1)?.seq ?? 0) + 1);
  }
}

/** The key of a wait is marked as such and, if it has many names, a hash; people know the wait by the names of its signals. */
function signalName(key: string, signals: string | null): string {
  return signals === null ? key.replace(/^signal:/, "") : `${signals}${/#\d+$/.exec(key)?.[0] ?? ""}`;
}

function stateOfSpans(spans: readonly WaterfallSpan[]): RowState {
  const last = spans.at(-1);
  if (last === undefined) return "waiting";
  return last.to === null ? "waiting" : last.state;
}
