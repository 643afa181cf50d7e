/** Names that steps had before, as a definition says them. */
import { InvalidInputError } from "../core/errors/errors.js";
import { checkName } from "../core/naming/names.js";
import type { Aliases } from "../core/run/stored-schema.js";

/** A name that two steps had, or that a step still has, would let one step take the record of another. */
export function checkAliases(owner: string, aliases: unknown): Aliases | null {
  if (aliases === undefined) return null;
  if (typeof aliases !== "object" || aliases === null || Array.isArray(aliases))
    throw new InvalidInputError(`The aliases of ${owner} are an object such as { charge: ["bill"] }.`);
  const stepByAlias = new Map<string, string>();
  for (const [name, oldNames] of Object.entries(aliases)) {
    checkName("step", name);
    if (!Array.isArray(oldNames))
      throw new InvalidInputError(
        `The aliases of step "${name}" of ${owner} are a list of the names that it had before.`,
      );
    for (const alias of oldNames) {
      checkName("step", alias);
      const otherStep = stepByAlias.get(alias) ?? (alias === name || Object.hasOwn(aliases, alias) ? alias : undefined);
      if (otherStep !== undefined)
        throw new InvalidInputError(
          `The aliases of ${owner} give "${alias}" to "${name}" and to "${otherStep}"; a recorded step can belong to one only.`,
        );
      stepByAlias.set(alias, name);
    }
  }
  return aliases as Aliases;
}
