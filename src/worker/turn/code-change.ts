/** The code may have another shape than when the run was last executed: what that means for it is told in its log, once. */

import { type ShapeChange, shapeChange, undeclared } from "../../core/graph/signature.js";
import { event } from "../../core/run/event.js";
import { nodesByKey } from "../../core/run/renamed-nodes.js";
import { isDeclared } from "../step/declared-steps.js";
import type { RunAtHand, RunWriting } from "./ports.js";

type ChangedTurn = RunAtHand & RunWriting;

export function noteChangedCode(turn: ChangedTurn): void {
  const { state } = turn;
  const { declared, name } = turn.definition;
  if (state.shape === null || state.shape === (declared?.signature ?? undeclared)) return;
  if (declared === null) {
    // A function has taken the place of a class or a graph: what it does from here on is no part of their proof.
    turn.pendingWrites.events.push(event("shape.changed", {}, { shape: undeclared }));
    return turn.log.warn(`Run ${turn.runId}: "${name}" declares no steps any more.`);
  }
  const change = shapeChange(
    nodesByKey(declared.nodes, turn),
    state,
    (key) => state.ops.get(key)?.kind === "step" && isDeclared(key),
  );
  turn.pendingWrites.events.push(event("shape.changed", {}, { shape: declared.signature, ...filled(change) }));
  turn.log.warn(`Run ${turn.runId}: the steps of "${name}" have changed since it was last executed.${inWords(change)}`);
}

function filled({ vanished, overtaken }: ShapeChange): Partial<Record<keyof ShapeChange, string[]>> {
  return {
    ...(vanished.length > 0 ? { vanished: [...vanished] } : {}),
    ...(overtaken.length > 0 ? { overtaken: [...overtaken] } : {}),
  };
}

function inWords({ vanished, overtaken }: ShapeChange): string {
  const list = (names: readonly string[]) => names.map((name) => `"${name}"`).join(", ");
  const gone =
    vanished.length > 0 ? ` It has a record of ${list(vanished)}, which the code does not have any more.` : "";
  const late = overtaken.length > 0 ? ` It is past steps that now come after ${list(overtaken)}.` : "";
  return gone + late;
}
