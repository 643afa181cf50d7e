/** The hero of a run, which is the user, order or other object that the run is about: its reference and its checks. */
import { InvalidInputError } from "../core/errors/errors.js";
import { checkName } from "../core/naming/names.js";
import type { HeroPolicy } from "../core/run/stored-schema.js";

/** The reference to a hero: the object in your data that a run is about, such as a user or an order. */
export interface HeroRef<Type extends string = string> {
  /** The kind of hero, such as "User". */
  readonly type: Type;
  /** Its id in your own data. */
  readonly id: string;
}

/** The policy of a workflow that sets no rules for heroes: its runs may have any hero, or none. */
export const defaultHeroPolicy: HeroPolicy = { type: null, required: false, allowMultiple: false };

/** Checks the hero of a new run, which may be a child run, against the policy of its workflow. */
export function checkHero(name: string, policy: HeroPolicy, hero: HeroRef | undefined): HeroRef | null {
  if (hero === undefined || hero === null) {
    if (!policy.required) return null;
    throw new InvalidInputError(
      `A run of workflow "${name}" is about a hero; start it with { hero: { type: "${policy.type ?? "…"}", id: "…" } }.`,
    );
  }
  if (typeof hero !== "object" || hero.type === undefined || hero.id === undefined)
    throw invalidHeroError(name, policy, hero);
  if (policy.type !== null && hero.type !== policy.type)
    throw new InvalidInputError(
      `A run of workflow "${name}" is about a hero of type "${policy.type}", not "${String(hero.type)}".`,
    );
  return { type: checkName("hero type", hero.type), id: heroId(hero) };
}

function invalidHeroError(name: string, { type }: HeroPolicy, hero: unknown): InvalidInputError {
  const shownHero =
    typeof hero === "object"
      ? `an object with ${Object.keys(hero as object).join(", ") || "nothing"}`
      : `a ${typeof hero}`;
  return new InvalidInputError(
    `The hero of a run of workflow "${name}" is given by type and id, { type: "${type ?? "…"}", id: "…" }, not as ${shownHero}.`,
  );
}

/** @throws InvalidInputError if the id is no string; for a numeric id, the error shows how to convert it */
export function heroId({ type, id }: { readonly type: unknown; readonly id: unknown }): string {
  if (typeof id !== "number" && typeof id !== "bigint") return checkName("hero id", id);
  throw new InvalidInputError(
    `The hero's id is the ${typeof id} ${id}, but a hero's id must be a string; write { type: "${String(type)}", id: String(id) }, or use heroOf(hero) of the class.`,
  );
}

/** The id of a hero as your own data has it. Runs store it as a string. */
export type HeroId = string | number | bigint;

/** @throws InvalidInputError when the class has no `heroType`, or the hero no id */
export function heroReference(
  workflow: { readonly name: string; readonly heroType?: unknown },
  hero: unknown,
): HeroRef {
  const { name, heroType } = workflow;
  if (typeof heroType !== "string")
    throw new InvalidInputError(
      `${name}.heroOf(hero) needs the hero's type; add static readonly heroType = "…" to the class.`,
    );
  const id: unknown = typeof hero === "object" && hero !== null ? (hero as { readonly id?: unknown }).id : hero;
  const isId = typeof id === "string" || typeof id === "bigint" || Number.isSafeInteger(id);
  if (!isId)
    throw new InvalidInputError(
      `${name}.heroOf(hero) takes a hero with an \`id\`, or the id itself: a string or a whole number, not ${id === undefined ? "undefined" : `a ${typeof id}`}.`,
    );
  return { type: checkName("hero type", heroType), id: checkName("hero id", String(id)) };
}
