/** The names of calls in a log: those that the body of a declared step makes, and those of code that has started over. */

/** How often code has started over: the handler, and declared steps each by itself. A `RunState` has both. */
interface Generations {
  readonly generation: number;
  readonly stepGenerations: ReadonlyMap<string, number> | null;
}

/** What a declared step does durably is recorded under its own name, this, and the name that its body uses. */
export const scopeSeparator = "/";
/** What the code for one item of a resumable step does is recorded under the item's number. */
export const itemPrefix = (item: number): string => `#${item + 1}${scopeSeparator}`;
export const scopeOf = (step: string): string => step + scopeSeparator;

/** The declared step that a call belongs to; a call of the handler itself belongs to itself. */
export function outerStep(key: string): string {
  const separatorIndex = key.indexOf(scopeSeparator);
  return separatorIndex < 0 ? key : key.slice(0, separatorIndex);
}

/** The name under which children know the call that started them: those of an earlier generation are strangers. */
export function childNode(state: Generations, key: string): string {
  const separatorIndex = key.indexOf(scopeSeparator);
  const stepGeneration = separatorIndex < 0 ? 0 : (state.stepGenerations?.get(key.slice(0, separatorIndex)) ?? 0);
  if (stepGeneration > 0) return `${key}~${state.generation}.${stepGeneration}`;
  return state.generation === 0 ? key : `${key}~${state.generation}`;
}

/** Which call of this run a child means; "" when that call was forgotten. */
export function callOfChild(state: Generations, node: string): string {
  if (childNode(state, node) === node) return node;
  const key = node.replace(/~\d+(\.\d+)?$/, "");
  return childNode(state, key) === node ? key : "";
}
