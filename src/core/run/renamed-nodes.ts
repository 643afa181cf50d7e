/** Declared steps that were renamed while runs were open: the log of such a run goes on with the older name. */

import type { RunState } from "./state.js";
import { recordedName } from "./step-name.js";
import type { Aliases } from "./stored-schema.js";

interface RenameContext {
  readonly state: RunState;
  readonly definition: { readonly aliases: Aliases | null };
}

/** What the log calls a step of the code. */
export function createStepKeyLookup({ state, definition }: RenameContext): (name: string) => string {
  const { aliases } = definition;
  if (aliases === null && state.logNameByCodeName === null) return (name) => name;
  return (name) => recordedName(state, aliases, "", name);
}

interface NamedNode {
  readonly name: string;
  readonly after: readonly string[];
}

/** The declared steps as the log calls them. */
export function withLogNames<Node extends NamedNode>(nodes: readonly Node[], context: RenameContext): readonly Node[] {
  if (context.definition.aliases === null && context.state.logNameByCodeName === null) return nodes;
  const keyOf = createStepKeyLookup(context);
  return nodes.map((node) => ({ ...node, name: keyOf(node.name), after: node.after.map(keyOf) }));
}
