/**
 * The current and former shapes of workflows with declared steps; a shape is the steps with their predecessors. Ancestry
 * hashes depend on the shape, and clients that recompute the hashes do not have the code, so each shape is stored as a row
 * of the workflow registry, under a name that no workflow can have. The row is written when a definition is registered, so
 * executing a step needs no additional write.
 */
import type { PredecessorsOf } from "../../core/graph/predecessors.js";
import { predecessorsOfNodes } from "../../core/graph/predecessors.js";
import type { ShapedNode } from "../../core/graph/signature.js";
import { sha256Hex } from "../../core/naming/ids.js";
import { withLogNames } from "../../core/run/renamed-nodes.js";
import type { RunState } from "../../core/run/state.js";
import type { Aliases, RegisteredShape } from "../../core/run/stored-schema.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { Store, WorkflowRecord, WorkflowRegistration } from "../../store/contract/store.js";

const shapeNamePrefix = "\tshape:";

export const isShapeRecord = ({ name }: { readonly name: string }): boolean => name.startsWith(shapeNamePrefix);

/** Makes the registry row for the shape of a workflow; null if the workflow declares no steps. */
export function shapeRegistration({ name, declared, aliases }: WorkflowDefinition): WorkflowRegistration | null {
  if (declared === null) return null;
  const { signature, nodes } = declared;
  const indexByName = new Map(nodes.map((node, index) => [node.name, index]));
  const row: RegisteredShape = {
    workflow: name,
    signature,
    steps: nodes.map((node) => [node.name, ...node.after.map((before) => indexByName.get(before) as number)]),
    ...(aliases === null ? {} : { aliases }),
  };
  // The aliases are part of the id, so that a change of the aliases adds a row: earlier runs were executed with the former
  // aliases, and checking their hashes needs the former row.
  const id = sha256Hex(JSON.stringify([name, signature, aliases])).slice(0, 32);
  return { name: `${shapeNamePrefix}${id}`, queue: null, version: null, signature, graph: JSON.stringify(row) };
}

interface WorkflowShape {
  readonly signature: string;
  readonly nodes: readonly ShapedNode[];
  readonly aliases: Aliases | null;
}

/** The predecessors of a step, by each shape that its run may have been executed with. */
export interface PossibleParents {
  /** The predecessors by the shape that the log names; empty if no worker has registered that shape. */
  readonly byRecordedShape: readonly PredecessorsOf[];
  /**
   * The predecessors by the other shapes of the workflow. They are possible because an operator may give the output of a
   * step before a worker with newer code has recorded its shape in the log.
   */
  readonly byOtherShapes: readonly PredecessorsOf[];
}

export class ShapeRegistry {
  readonly #shapesByWorkflow = new Map<string, WorkflowShape[]>();
  /**
   * A cache whose key is the list of nodes. `withLogNames` returns the same list object for all runs, unless steps were
   * renamed.
   */
  readonly #parentsByNodes = new WeakMap<readonly ShapedNode[], PredecessorsOf>();

  static async read(store: Store): Promise<ShapeRegistry> {
    return new ShapeRegistry((await store.maintenance.workflows()).filter(isShapeRecord));
  }

  constructor(records: readonly WorkflowRecord[]) {
    for (const record of records) this.#add(record);
  }

  /** Skips a row that cannot be read: `verify` reports it, and the hashes of its runs stay unchecked. */
  #add({ graph }: WorkflowRecord): void {
    let row: RegisteredShape;
    try {
      row = JSON.parse(graph ?? "") as RegisteredShape;
      const { workflow, signature, steps, aliases = null } = row;
      const nodes = steps.map(([name, ...after]) => ({
        name,
        after: after.map((place) => steps[place]?.[0] as string),
      }));
      const workflowShapes = this.#shapesByWorkflow.get(workflow);
      const shape = { signature, nodes, aliases };
      if (workflowShapes === undefined) this.#shapesByWorkflow.set(workflow, [shape]);
      else workflowShapes.push(shape);
    } catch {
      // See the comment of this method.
    }
  }

  #predecessorsOf(nodes: readonly ShapedNode[]): PredecessorsOf {
    let parentsOf = this.#parentsByNodes.get(nodes);
    if (parentsOf === undefined) this.#parentsByNodes.set(nodes, (parentsOf = predecessorsOfNodes(nodes)));
    return parentsOf;
  }

  possibleParents(workflow: string, state: RunState): PossibleParents {
    const byRecordedShape: PredecessorsOf[] = [];
    const byOtherShapes: PredecessorsOf[] = [];
    const states = [state, ...withUndoneSteps(state)];
    for (const { signature, nodes, aliases } of this.#shapesByWorkflow.get(workflow) ?? []) {
      const listOfShape = signature === state.stepSignature ? byRecordedShape : byOtherShapes;
      const parentsFor = (possibleState: RunState) =>
        this.#predecessorsOf(withLogNames(nodes, { state: possibleState, definition: { aliases } }));
      for (const possibleState of states) listOfShape.push(parentsFor(possibleState));
      if (state.callsToRedo !== null)
        for (const possibleState of states) listOfShape.push(parentsFor(withoutRedo(possibleState)));
    }
    return { byRecordedShape, byOtherShapes };
  }
}

/**
 * For a retry: steps that it inherited got their hashes in the failed run, whose state had no `callsToRedo`. The names in
 * the log are therefore resolved without them.
 */
const withoutRedo = (state: RunState): RunState => ({ ...state, callsToRedo: null });

/** For a retry: returns the state with the steps that the failed run had completed and then compensated. */
function withUndoneSteps(state: RunState): RunState[] {
  const undoneHashes = state.lineage?.undoneHashes;
  if (undoneHashes === undefined || undoneHashes.size === 0) return [];
  const ops = new Map(state.ops);
  // Names are resolved by whether the log has a key, so the kind of the op does not matter.
  for (const key of undoneHashes.keys()) if (!ops.has(key)) ops.set(key, { kind: "patch" });
  return [{ ...state, ops }];
}
