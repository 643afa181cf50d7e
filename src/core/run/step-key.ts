/** The keys of calls in a log: of calls that the body of a declared step makes, and of code that has started over. */

/** How often the handler, and each declared step, has started over. A `RunState` has both. */
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

/** The name by which children know their call. It contains the generation, so that messages of earlier children are ignored. */
export function childNode(state: Generations, key: string): string {
  const separatorIndex = key.indexOf(scopeSeparator);
  const stepGeneration = separatorIndex < 0 ? 0 : (state.stepGenerations?.get(key.slice(0, separatorIndex)) ?? 0);
  if (stepGeneration > 0) return `${key}~${state.generation}.${stepGeneration}`;
  return state.generation === 0 ? key : `${key}~${state.generation}`;
}

/** The call that a child's message refers to; "" when the code has started over since. */
export function callOfChild(state: Generations, node: string): string {
  if (childNode(state, node) === node) return node;
  const key = node.replace(/~\d+(\.\d+)?$/, "");
  return childNode(state, key) === node ? key : "";
}
