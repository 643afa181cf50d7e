/**
 * Records in the log, once per change, that the declared steps differ from the steps that the run was last executed
 * with.
 */

import { findShapeChange, type ShapeChange, undeclaredSignature } from "../../core/graph/signature.js";
import { newEvent } from "../../core/run/event.js";
import { withLogNames } from "../../core/run/renamed-nodes.js";
import { isDeclared } from "../step/declared-steps.js";
import type { RunPort, WritePort } from "./ports.js";

type ChangedTurn = RunPort & WritePort;

export function recordCodeChange(turn: ChangedTurn): void {
  const { state } = turn;
  const { declared, name } = turn.definition;
  if (state.stepSignature === null || state.stepSignature === (declared?.signature ?? undeclaredSignature)) return;
  if (declared === null) {
    // A function-style workflow has replaced a class or graph, so there are no declared steps to compare.
    turn.pendingWrites.events.push(newEvent("shape.changed", {}, { shape: undeclaredSignature }));
    return turn.log.warn(`Run ${turn.runId}: workflow "${name}" no longer declares steps.`);
  }
  const change = findShapeChange(
    withLogNames(declared.nodes, turn),
    state,
    (key) => state.ops.get(key)?.kind === "step" && isDeclared(key),
  );
  turn.pendingWrites.events.push(
    newEvent("shape.changed", {}, { shape: declared.signature, ...withoutEmptyLists(change) }),
  );
  turn.log.warn(
    `Run ${turn.runId}: the steps of "${name}" have changed since the run was last executed.${describeChange(change)}`,
  );
}

function withoutEmptyLists({ removedSteps, passedSteps }: ShapeChange): Partial<Record<keyof ShapeChange, string[]>> {
  return {
    ...(removedSteps.length > 0 ? { removedSteps: [...removedSteps] } : {}),
    ...(passedSteps.length > 0 ? { passedSteps: [...passedSteps] } : {}),
  };
}

function describeChange({ removedSteps, passedSteps }: ShapeChange): string {
  const list = (names: readonly string[]) => names.map((name) => `"${name}"`).join(", ");
  const removedText =
    removedSteps.length > 0 ? ` The log has ${list(removedSteps)}, which the code no longer has.` : "";
  const passedText =
    passedSteps.length > 0 ? ` The run has already passed steps that now come after ${list(passedSteps)}.` : "";
  return removedText + passedText;
}
