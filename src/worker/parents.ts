/** What each node of a run comes after: by the graph that was imported, the one it was born with, or its code. */
import type { ParentsOf } from "../core/ancestry.js";
import { dagOf, parentsInDag, parentsOfNodes } from "../core/dag.js";
import { nodesByKey } from "../core/renamed-nodes.js";
import type { RunState } from "../core/state.js";
import type { WorkflowDefinition } from "../define/definition.js";
import type { RunRecord } from "../store/store.js";
import type { Given } from "./given.js";

/** Looked up when it is first asked for, and again when a graph was imported meanwhile. */
export function parentsIn(run: RunRecord, state: RunState, given: Given, definition: WorkflowDefinition): ParentsOf {
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
