/** The code may have another shape than when the run was last executed: what that means for it is told in its log, once. */

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
    // A function has taken the place of a class or a graph: what it does from here on is no part of their proof.
    turn.pendingWrites.events.push(newEvent("shape.changed", {}, { shape: undeclaredSignature }));
    return turn.log.warn(`Run ${turn.runId}: "${name}" declares no steps any more.`);
  }
  const change = findShapeChange(
    withLogNames(declared.nodes, turn),
    state,
    (key) => state.ops.get(key)?.kind === "step" && isDeclared(key),
  );
  turn.pendingWrites.events.push(newEvent("shape.changed", {}, { shape: declared.signature, ...withoutEmptyLists(change) }));
  turn.log.warn(
    `Run ${turn.runId}: the steps of "${name}" have changed since it was last executed.${describeChange(change)}`,
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
    removedSteps.length > 0 ? ` It has a record of ${list(removedSteps)}, which the code does not have any more.` : "";
  const passedText = passedSteps.length > 0 ? ` It is past steps that now come after ${list(passedSteps)}.` : "";
  return removedText + passedText;
}
