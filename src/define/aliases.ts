/** Names that steps had before, as a definition says them. */
import { InvalidInputError } from "../core/errors/errors.js";
import { checkName } from "../core/naming/names.js";
import type { Aliases } from "../core/run/stored-schema.js";

/** A name that two steps had, or that a step still has, would let one step take the record of another. */
export function checkAliases(of: string, aliases: unknown): Aliases | null {
  if (aliases === undefined) return null;
  if (typeof aliases !== "object" || aliases === null || Array.isArray(aliases))
    throw new InvalidInputError(`The aliases of ${of} are an object such as { charge: ["bill"] }.`);
  const seen = new Map<string, string>();
  for (const [name, older] of Object.entries(aliases)) {
    checkName("step", name);
    if (!Array.isArray(older))
      throw new InvalidInputError(`The aliases of step "${name}" of ${of} are a list of the names that it had before.`);
    for (const alias of older) {
      checkName("step", alias);
      const other = seen.get(alias) ?? (alias === name || Object.hasOwn(aliases, alias) ? alias : undefined);
      if (other !== undefined)
        throw new InvalidInputError(
          `The aliases of ${of} give "${alias}" to "${name}" and to "${other}"; a recorded step can belong to one only.`,
        );
      seen.set(alias, name);
    }
  }
  return aliases as Aliases;
}
