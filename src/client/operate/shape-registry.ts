/**
 * The shapes that the declared steps of workflows have, or once had. Ancestry hashes are made from them, and those who
 * compute the hashes again have no code: each shape is a row of the registry, under a name that no workflow can have.
 * It is written when a definition is registered, so that a step costs nothing more.
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

/** null: its steps are not declared. */
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
  // Of the same steps under other aliases, both are kept: runs may have been executed with either.
  const id = sha256Hex(JSON.stringify([name, signature, aliases])).slice(0, 32);
  return { name: `${shapeNamePrefix}${id}`, queue: null, version: null, signature, graph: JSON.stringify(row) };
}

interface WorkflowShape {
  readonly signature: string;
  readonly nodes: readonly ShapedNode[];
  readonly aliases: Aliases | null;
}

/** What one step came after, by each shape that its run may have been executed with. */
export interface PossibleParents {
  /** By the shape that the log names; empty when no worker has registered it. */
  readonly byRecordedShape: readonly PredecessorsOf[];
  /** By the other shapes of its workflow: an operator's answer may be taken by code that has not said yet that it is newer. */
  readonly byOtherShapes: readonly PredecessorsOf[];
}

export class ShapeRegistry {
  readonly #byWorkflow = new Map<string, WorkflowShape[]>();
  /** By steps whose names the log has as they are: then they are the same ones each time. */
  readonly #parents = new WeakMap<readonly ShapedNode[], PredecessorsOf>();

  static async read(store: Store): Promise<ShapeRegistry> {
    return new ShapeRegistry((await store.maintenance.workflows()).filter(isShapeRecord));
  }

  constructor(records: readonly WorkflowRecord[]) {
    for (const record of records) this.#add(record);
  }

  /** A row that cannot be read is reported by `verify`; the runs of its shape cannot be checked. */
  #add({ graph }: WorkflowRecord): void {
    let row: RegisteredShape;
    try {
      row = JSON.parse(graph ?? "") as RegisteredShape;
      const { workflow, signature, steps, aliases = null } = row;
      const nodes = steps.map(([name, ...after]) => ({
        name,
        after: after.map((place) => steps[place]?.[0] as string),
      }));
      const workflowShapes = this.#byWorkflow.get(workflow);
      const shape = { signature, nodes, aliases };
      if (workflowShapes === undefined) this.#byWorkflow.set(workflow, [shape]);
      else workflowShapes.push(shape);
    } catch {
      // See above.
    }
  }

  #parentsOf(nodes: readonly ShapedNode[]): PredecessorsOf {
    let parentsOf = this.#parents.get(nodes);
    if (parentsOf === undefined) this.#parents.set(nodes, (parentsOf = predecessorsOfNodes(nodes)));
    return parentsOf;
  }

  possibleParents(workflow: string, state: RunState): PossibleParents {
    const byRecordedShape: PredecessorsOf[] = [];
    const byOtherShapes: PredecessorsOf[] = [];
    const states = [state, ...withUndoneSteps(state)];
    for (const { signature, nodes, aliases } of this.#byWorkflow.get(workflow) ?? []) {
      const list = signature === state.stepSignature ? byRecordedShape : byOtherShapes;
      const parentsFor = (one: RunState) =>
        this.#parentsOf(withLogNames(nodes, { state: one, definition: { aliases } }));
      for (const one of states) list.push(parentsFor(one));
      if (state.callsToRedo !== null) for (const one of states) list.push(parentsFor(withoutRedo(one)));
    }
    return { byRecordedShape, byOtherShapes };
  }
}

/** Of a retry: as the run was that it goes on for, which did not look for names of steps that were to be done again. */
const withoutRedo = (state: RunState): RunState => ({ ...state, callsToRedo: null });

/** Of a retry: as the run was that it goes on for, which had steps that were undone since, perhaps under names of their own. */
function withUndoneSteps(state: RunState): RunState[] {
  const undoneHashes = state.lineage?.undoneHashes;
  if (undoneHashes === undefined || undoneHashes.size === 0) return [];
  const ops = new Map(state.ops);
  // Only that there was such a step matters.
  for (const key of undoneHashes.keys()) if (!ops.has(key)) ops.set(key, { kind: "patch" });
  return [{ ...state, ops }];
}
