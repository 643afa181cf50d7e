/** What each node of a run comes after: by the graph that was imported, the one it was born with, or its code. */

import { dagOf, parentsInDag } from "../../core/graph/frozen-dag.js";
import type { ParentsOf } from "../../core/graph/predecessors.js";
import { parentsOfNodes } from "../../core/graph/predecessors.js";
import { nodesByKey } from "../../core/run/renamed-nodes.js";
import type { RunState } from "../../core/run/state.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { RunRecord } from "../../store/contract/store.js";
import type { StoredInput } from "./stored-input.js";

/** Looked up when it is first asked for, and again when a graph was imported meanwhile. */
export function parentsIn(
  run: RunRecord,
  state: RunState,
  given: StoredInput,
  definition: WorkflowDefinition,
): ParentsOf {
  let known: { readonly dag: RunState["dag"]; readonly of: ParentsOf } | null = null;
  return (node) => {
    if (known === null || known.dag !== state.dag) {
      const dag = dagOf(run, state, () => given.value);
      known = {
        dag: state.dag,
        of:
          dag === null
            ? parentsOfNodes(nodesByKey(definition.declared?.nodes ?? [], { state, definition }))
            : parentsInDag(dag),
      };
    }
    return known.of(node);
  };
}
