/** Classes whose name a bundler or minifier has probably made: runs are known by it, and the next build may make another. */
import type { WorkflowDefinition } from "../definition.js";

/** One or two characters, or esbuild's name for a class that mentions itself in a static block: `_Onboarding`. */
const made = /^(?:.{1,2}|_[A-Z]\w*)$/;

const suspects = new WeakSet<WorkflowDefinition>();

/** @param given the name that the class was given in its options, if it was */
export function noteName(definition: WorkflowDefinition, given: string | undefined): void {
  if (given === undefined && made.test(definition.name)) suspects.add(definition);
}

/** What to tell about the name; null when there is nothing to tell. */
export function nameWarning(definition: WorkflowDefinition): string | null {
  if (!suspects.has(definition)) return null;
  const { name } = definition;
  const meant = name.startsWith("_") ? name.slice(1) : "Onboarding";
  return `The workflow class "${name}" has a name that a bundler or minifier seems to have made. Runs are known by it, and the next build may make another: name the class yourself with this.options({ name: "${meant}" }), or keep names (esbuild: --keep-names).`;
}
