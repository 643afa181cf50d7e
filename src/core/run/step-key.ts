/** The names of calls in a log: those that the body of a declared step makes, and those of code that has started over. */

/** How often code has started over: the handler, and declared steps each by itself. A `RunState` has both. */
interface Generations {
  readonly generation: number;
  readonly stepGenerations: ReadonlyMap<string, number> | null;
}

/** What a declared step does durably is recorded under its own name, this, and the name that its body uses. */
export const scopeMark = "/";
/** What the code for one item of a resumable step does is recorded under the item's number. */
export const itemPrefix = (item: number): string => `#${item + 1}${scopeMark}`;
export const scopeOf = (step: string): string => step + scopeMark;

/** The declared step that a call belongs to; a call of the handler itself belongs to itself. */
export function outerStep(key: string): string {
  const mark = key.indexOf(scopeMark);
  return mark < 0 ? key : key.slice(0, mark);
}

/** The name under which children know the call that started them: those of an earlier generation are strangers. */
export function childNode(state: Generations, key: string): string {
  const mark = key.indexOf(scopeMark);
  const own = mark < 0 ? 0 : (state.stepGenerations?.get(key.slice(0, mark)) ?? 0);
  if (own > 0) return `${key}~${state.generation}.${own}`;
  return state.generation === 0 ? key : `${key}~${state.generation}`;
}

/** Which call of this run a child means; "" when that call was forgotten. */
export function callOfChild(state: Generations, node: string): string {
  if (childNode(state, node) === node) return node;
  const key = node.replace(/~\d+(\.\d+)?$/, "");
  return childNode(state, key) === node ? key : "";
}
