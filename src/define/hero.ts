/** Who a run is about: checked when it is started. */
import { InvalidInputError } from "../core/errors.js";
import { checkName } from "../core/names.js";
import type { HeroPolicy } from "./definition.js";
import type { HeroRef } from "./stepping.js";

/** What the workflow says about its heroes holds for every run, also for children. */
export function checkHero(name: string, policy: HeroPolicy, hero: HeroRef | undefined): HeroRef | null {
  if (hero === undefined || hero === null) {
    if (!policy.required) return null;
    throw new InvalidInputError(
      `A run of workflow "${name}" is about a hero; start it with { hero: { type: "${policy.type ?? "…"}", id: "…" } }.`,
    );
  }
  if (policy.type !== null && hero.type !== policy.type)
    throw new InvalidInputError(
      `A run of workflow "${name}" is about a hero of type "${policy.type}", not "${String(hero.type)}".`,
    );
  return { type: checkName("hero type", hero.type), id: checkName("hero id", hero.id) };
}
