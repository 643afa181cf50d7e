/**
 * Detects class names that a bundler or minifier probably made. Runs are stored under the name of their class, and if the
 * next build changes the name, no worker finds the open runs.
 */
import type { WorkflowDefinition } from "../definition.js";

/** Matches one or two characters, and esbuild's name for a class that refers to itself in a static block: `_Onboarding`. */
const minifiedNamePattern = /^(?:.{1,2}|_[A-Z]\w*)$/;

const minifiedDefinitions = new WeakSet<WorkflowDefinition>();

/** @param explicitName the option `name` of the class, if it is set */
export function markIfMinified(definition: WorkflowDefinition, explicitName: string | undefined): void {
  if (explicitName === undefined && minifiedNamePattern.test(definition.name)) minifiedDefinitions.add(definition);
}

/** Returns a warning if the definition has a minified name, otherwise null. */
export function nameWarning(definition: WorkflowDefinition): string | null {
  if (!minifiedDefinitions.has(definition)) return null;
  const { name } = definition;
  const suggestedName = name.startsWith("_") ? name.slice(1) : "Onboarding";
  return `The workflow class "${name}" has a name that a bundler or minifier seems to have made. Its runs are stored under this name, and the next build may change it: name the class yourself with this.options({ name: "${suggestedName}" }), or keep names (esbuild: --keep-names).`;
}
