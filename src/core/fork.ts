/** What a new run takes over from one that failed: all that was done for good, and nothing that was only begun. */
import { compensationOf, isCompensation } from "./compensation.js";
import { dataOf, event, type NewEvent, type StoredEvent } from "./event.js";
import { fold } from "./fold.js";
import { scopeMark } from "./scope.js";
import type { Op, RunState } from "./state.js";

/** The beginning of the new log. Numbers of signals are those of the new log. */
export function inheritedFrom(runId: string, log: readonly StoredEvent[]): NewEvent[] {
  const state = fold(log);
  const isKept = (node: string) => keeps(state, node);
  const numbers = new Map<number, number>();
  const kept: NewEvent[] = [];
  for (const { seq, at: _at, ...one } of log) {
    const copy = copyOf(one, isKept, numbers);
    if (copy === null) continue;
    kept.push(copy);
    numbers.set(seq, kept.length);
    if (one.type !== "run.started") continue;
    kept.push(event("run.forked", {}, { from: runId }));
  }
  return kept;
}

const ofTheRun = new Set(["signal.received", "shape.changed", "dag.imported", "input.checked"]);

function copyOf(
  one: NewEvent,
  isKept: (node: string) => boolean,
  numbers: ReadonlyMap<number, number>,
): NewEvent | null {
  if (one.type === "run.started") {
    // It begins when it begins.
    const { began: _began, ...rest } = dataOf(one, "run.started");
    return event("run.started", {}, rest);
  }
  if (ofTheRun.has(one.type)) return one;
  if (one.node === null || !isKept(one.node) || one.type.startsWith("map.") || one.type.startsWith("run.")) return null;
  if (one.type !== "wait.completed") return one;
  const { signals } = dataOf(one, "wait.completed");
  return event("wait.completed", { node: one.node }, { signals: signals.map((seq) => numbers.get(seq) as number) });
}

/** Parts of a step are kept with it: a step that is run again begins at its beginning. */
function keeps(state: RunState, node: string): boolean {
  const mark = node.indexOf(scopeMark);
  if (mark >= 0 && !keeps(state, node.slice(0, mark))) return false;
  const op = state.ops.get(node);
  return op !== undefined && !isCompensation(node) && isDone(state, node, op);
}

function isDone(state: RunState, node: string, op: Op): boolean {
  switch (op.kind) {
    case "step": {
      // What was undone has to be done again.
      const undone = state.ops.get(compensationOf(node));
      return (op.phase === "completed" || op.phase === "skipped") && undone === undefined;
    }
    case "timer":
      return op.phase === "fired";
    case "wait":
      return op.phase === "completed" || op.phase === "timed out";
    case "child":
      return op.phase === "completed";
    case "branch":
    case "patch":
      return true;
    default:
      // The results of a map lie with its children, which are those of the other run.
      return false;
  }
}
