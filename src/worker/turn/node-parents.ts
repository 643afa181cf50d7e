/** Looks up the predecessors of each node of a run in its imported graph, its original graph, or its definition. */

import { dagOf, predecessorsInDag } from "../../core/graph/frozen-dag.js";
import type { PredecessorsOf } from "../../core/graph/predecessors.js";
import { predecessorsOfNodes } from "../../core/graph/predecessors.js";
import { withLogNames } from "../../core/run/renamed-nodes.js";
import type { RunState } from "../../core/run/state.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { RunRecord } from "../../store/contract/store.js";
import type { StoredInput } from "./stored-input.js";

/** The returned function computes its lookup table on first use, and again after a graph was imported into the run. */
export function createParentLookup(
  run: RunRecord,
  state: RunState,
  storedInput: StoredInput,
  definition: WorkflowDefinition,
): PredecessorsOf {
  let cached: { readonly dag: RunState["importedDag"]; readonly predecessorsOf: PredecessorsOf } | null = null;
  return (node) => {
    if (cached === null || cached.dag !== state.importedDag) {
      const dag = dagOf(run, state, () => storedInput.value);
      cached = {
        dag: state.importedDag,
        predecessorsOf:
          dag === null
            ? predecessorsOfNodes(withLogNames(definition.declared?.nodes ?? [], { state, definition }))
            : predecessorsInDag(dag),
      };
    }
    return cached.predecessorsOf(node);
  };
}
