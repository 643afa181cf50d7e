/**
 * The shapes that the declared steps of workflows have, or once had. Ancestry hashes are made from them, and those who
 * compute the hashes again have no code: each shape is a row of the registry, under a name that no workflow can have.
 * It is written when a definition is registered, so that a step costs nothing more.
 */
import type { ParentsOf } from "../../core/graph/predecessors.js";
import { parentsOfNodes } from "../../core/graph/predecessors.js";
import type { ShapedNode } from "../../core/graph/signature.js";
import { sha256Hex } from "../../core/naming/ids.js";
import { nodesByKey } from "../../core/run/renamed-nodes.js";
import type { RunState } from "../../core/run/state.js";
import type { Aliases, RegisteredShape } from "../../core/run/stored-schema.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { Store, WorkflowRecord, WorkflowRegistration } from "../../store/contract/store.js";

const mark = "\tshape:";

export const isShape = ({ name }: { readonly name: string }): boolean => name.startsWith(mark);

/** null: its steps are not declared. */
export function shapeRegistration({ name, declared, aliases }: WorkflowDefinition): WorkflowRegistration | null {
  if (declared === null) return null;
  const { signature, nodes } = declared;
  const places = new Map(nodes.map((node, index) => [node.name, index]));
  const row: RegisteredShape = {
    workflow: name,
    signature,
    steps: nodes.map((node) => [node.name, ...node.after.map((before) => places.get(before) as number)]),
    ...(aliases === null ? {} : { aliases }),
  };
  // Of the same steps under other aliases, both are kept: runs may have been executed with either.
  const id = sha256Hex(JSON.stringify([name, signature, aliases])).slice(0, 32);
  return { name: `${mark}${id}`, queue: null, version: null, signature, graph: JSON.stringify(row) };
}

interface KnownShape {
  readonly signature: string;
  readonly nodes: readonly ShapedNode[];
  readonly aliases: Aliases | null;
}

/** What one step came after, by each shape that its run may have been executed with. */
export interface PossibleParents {
  /** By the shape that the log names; empty when no worker has registered it. */
  readonly inForce: readonly ParentsOf[];
  /** By the other shapes of its workflow: an operator's answer may be taken by code that has not said yet that it is newer. */
  readonly others: readonly ParentsOf[];
}

export class Shapes {
  readonly #byWorkflow = new Map<string, KnownShape[]>();
  /** By steps whose names the log has as they are: then they are the same ones each time. */
  readonly #parents = new WeakMap<readonly ShapedNode[], ParentsOf>();

  static async read(store: Store): Promise<Shapes> {
    return new Shapes((await store.upkeep.workflows()).filter(isShape));
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
      const known = this.#byWorkflow.get(workflow);
      const shape = { signature, nodes, aliases };
      if (known === undefined) this.#byWorkflow.set(workflow, [shape]);
      else known.push(shape);
    } catch {
      // See above.
    }
  }

  #parentsOf(nodes: readonly ShapedNode[]): ParentsOf {
    let parentsOf = this.#parents.get(nodes);
    if (parentsOf === undefined) this.#parents.set(nodes, (parentsOf = parentsOfNodes(nodes)));
    return parentsOf;
  }

  possibleParents(workflow: string, state: RunState): PossibleParents {
    const inForce: ParentsOf[] = [];
    const others: ParentsOf[] = [];
    const states = [state, ...withLost(state)];
    for (const { signature, nodes, aliases } of this.#byWorkflow.get(workflow) ?? []) {
      const list = signature === state.shape ? inForce : others;
      const parentsBy = (one: RunState) => this.#parentsOf(nodesByKey(nodes, { state: one, definition: { aliases } }));
      for (const one of states) list.push(parentsBy(one));
      if (state.redo !== null) for (const one of states) list.push(parentsBy(asBefore(one)));
    }
    return { inForce, others };
  }
}

/** Of a retry: as the run was that it goes on for, which did not look for names of steps that were to be done again. */
const asBefore = (state: RunState): RunState => ({ ...state, redo: null });

/** Of a retry: as the run was that it goes on for, which had steps that were undone since, perhaps under names of their own. */
function withLost(state: RunState): RunState[] {
  const lost = state.lineage?.hashes;
  if (lost === undefined || lost.size === 0) return [];
  const ops = new Map(state.ops);
  // Only that there was such a step matters.
  for (const key of lost.keys()) if (!ops.has(key)) ops.set(key, { kind: "patch" });
  return [{ ...state, ops }];
}
