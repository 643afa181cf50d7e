/** Maps declared steps that were renamed while runs were open to the older names, which the logs of these runs keep. */

import type { RunState } from "./state.js";
import { recordedName } from "./step-name.js";
import type { Aliases } from "./stored-schema.js";

interface RenameContext {
  readonly state: RunState;
  readonly definition: { readonly aliases: Aliases | null };
}

/** Returns a function that maps a step's name in the code to its name in the log. */
export function createStepKeyLookup({ state, definition }: RenameContext): (name: string) => string {
  const { aliases } = definition;
  if (aliases === null && state.logNameByCodeName === null) return (name) => name;
  return (name) => recordedName(state, aliases, "", name);
}

interface NamedNode {
  readonly name: string;
  readonly after: readonly string[];
}

/** The declared steps with their names in the log. */
export function withLogNames<Node extends NamedNode>(nodes: readonly Node[], context: RenameContext): readonly Node[] {
  if (context.definition.aliases === null && context.state.logNameByCodeName === null) return nodes;
  const keyOf = createStepKeyLookup(context);
  return nodes.map((node) => ({ ...node, name: keyOf(node.name), after: node.after.map(keyOf) }));
}
