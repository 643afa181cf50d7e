/** Classes whose name a bundler or minifier has probably made: runs are known by it, and the next build may make another. */
import type { WorkflowDefinition } from "../definition.js";

/** One or two characters, or esbuild's name for a class that mentions itself in a static block: `_Onboarding`. */
const minifiedNamePattern = /^(?:.{1,2}|_[A-Z]\w*)$/;

const minifiedDefinitions = new WeakSet<WorkflowDefinition>();

/** @param explicitName the name that the class was given in its options, if it was */
export function markIfMinified(definition: WorkflowDefinition, explicitName: string | undefined): void {
  if (explicitName === undefined && minifiedNamePattern.test(definition.name)) minifiedDefinitions.add(definition);
}

/** What to tell about the name; null when there is nothing to tell. */
export function nameWarning(definition: WorkflowDefinition): string | null {
  if (!minifiedDefinitions.has(definition)) return null;
  const { name } = definition;
  const suggestedName = name.startsWith("_") ? name.slice(1) : "Onboarding";
  return `The workflow class "${name}" has a name that a bundler or minifier seems to have made. Runs are known by it, and the next build may make another: name the class yourself with this.options({ name: "${suggestedName}" }), or keep names (esbuild: --keep-names).`;
}
