/** Checks the option `aliases`: the former names of renamed steps. */
import { InvalidInputError } from "../core/errors/errors.js";
import { checkName } from "../core/naming/names.js";
import type { Aliases } from "../core/run/stored-schema.js";

/** Refuses a former name that two steps claim, or that a step still has: a step would get the recorded result of another. */
export function checkAliases(owner: string, aliases: unknown): Aliases | null {
  if (aliases === undefined) return null;
  if (typeof aliases !== "object" || aliases === null || Array.isArray(aliases))
    throw new InvalidInputError(`The aliases of ${owner} must be an object such as { charge: ["bill"] }.`);
  const stepByAlias = new Map<string, string>();
  for (const [name, oldNames] of Object.entries(aliases)) {
    checkName("step", name);
    if (!Array.isArray(oldNames))
      throw new InvalidInputError(`The aliases of step "${name}" of ${owner} must be a list of its former names.`);
    for (const alias of oldNames) {
      checkName("step", alias);
      const otherStep = stepByAlias.get(alias) ?? (alias === name || Object.hasOwn(aliases, alias) ? alias : undefined);
      if (otherStep !== undefined)
        throw new InvalidInputError(
          `The aliases of ${owner} give "${alias}" to "${name}" and to "${otherStep}"; a former name can belong to one step only.`,
        );
      stepByAlias.set(alias, name);
    }
  }
  return aliases as Aliases;
}
