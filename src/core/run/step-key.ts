/** The keys of calls in a log, and the names by which the rows of child runs refer to these calls. */

/** How often the handler, and the body of each declared step, has started over. A `RunState` has these fields. */
interface Generations {
  readonly generation: number;
  readonly stepGenerations: ReadonlyMap<string, number> | null;
}

/** A call of a declared step's body is recorded as `step/name`. */
export const scopeSeparator = "/";
/** A call of the code for one item of a resumable step is recorded as `step/#item/name`. */
export const itemPrefix = (item: number): string => `#${item + 1}${scopeSeparator}`;
/** The prefix of the keys of all calls of a step's body. */
export const scopeOf = (step: string): string => step + scopeSeparator;

/** The declared step that a call belongs to; the key itself for a call of the handler. */
export function outerStep(key: string): string {
  const separatorIndex = key.indexOf(scopeSeparator);
  return separatorIndex < 0 ? key : key.slice(0, separatorIndex);
}

/**
 * The name of the call in the rows and messages of its children. The name contains the generation, so that the run ignores
 * messages of children that were started before the code started over.
 */
export function childNode(state: Generations, key: string): string {
  const separatorIndex = key.indexOf(scopeSeparator);
  const stepGeneration = separatorIndex < 0 ? 0 : (state.stepGenerations?.get(key.slice(0, separatorIndex)) ?? 0);
  if (stepGeneration > 0) return `${key}~${state.generation}.${stepGeneration}`;
  return state.generation === 0 ? key : `${key}~${state.generation}`;
}

/** The key of the call that a child's message refers to; "" when the code has started over since the child was started. */
export function callOfChild(state: Generations, node: string): string {
  if (childNode(state, node) === node) return node;
  const key = node.replace(/~\d+(\.\d+)?$/, "");
  return childNode(state, key) === node ? key : "";
}
