/** The declared nodes of a run that have not begun. */
import { descendantsIn } from "../../../core/graph/topological-sort.js";
import type { PlannedNode } from "../nodes.js";
import type { RowNode, RowState } from "./rows.js";

const openStates: ReadonlySet<RowState> = new Set(["executing", "scheduled", "waiting"]);

/**
 * @param states the states of the nodes that the window has events of
 * @param isFromStart whether the window begins with the first event. If not, a node without events may have ended before the
 *   window, so only nodes are listed that must wait for one which has not ended.
 */
export function nodesToCome(
  declaredNodes: readonly PlannedNode[],
  states: ReadonlyMap<string, RowState>,
  isFromStart: boolean,
  nextSeq: number,
): RowNode[] {
  const idOf = ({ id, name }: PlannedNode) => id ?? name;
  const blocked = isFromStart ? null : blockedNodes(declaredNodes, states);
  return declaredNodes
    .filter((node) => !states.has(idOf(node)) && (blocked === null || blocked.has(node.name)))
    .map((node, index) => ({ row: rowOf(idOf(node), node), firstSeq: nextSeq + index, children: [] }));
}

/** The names of all nodes that depend on one that has not ended. */
function blockedNodes(
  declaredNodes: readonly PlannedNode[],
  states: ReadonlyMap<string, RowState>,
): ReadonlySet<string> {
  // No name contains a tab, so this is no node: the open nodes depend on it, and it finds all descendants at once.
  const root = "\t";
  const isOpen = ({ id, name }: PlannedNode) => openStates.has(states.get(id ?? name) ?? "pending");
  const edges = declaredNodes.map((node): [string, readonly string[]] => [
    node.name,
    isOpen(node) ? [...node.after, root] : node.after,
  ]);
  return new Set(descendantsIn(edges, root));
}

function rowOf(id: string, { name, kind, job }: PlannedNode) {
  return {
    id,
    node: id,
    name,
    kind: kind === "branch" ? "branch" : "step",
    depth: 0,
    state: "pending",
    attempts: 0,
    detail: job ?? null,
    child: null,
    group: null,
    spans: [],
  } as const;
}
