/** How a run is born: what the definition, the options and the input make of its row. */

import { encode } from "../../core/encoding/encode.js";
import { InvalidInputError } from "../../core/errors/errors.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { checkName, checkTags } from "../../core/naming/names.js";
import { heroKeyOf } from "../../core/naming/start-key.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import { checkPriority } from "../../define/function/function.js";
import type { HeroRef } from "../../define/hero.js";
import { checkHero } from "../../define/hero.js";
import type { NewRun } from "../../store/contract/store.js";
import { tagsOfStart } from "../../telemetry/around.js";
import type { IdSource } from "./new-id.js";

export interface StartOptions {
  /** The same key starts a workflow once; later starts with it get the first run. */
  readonly idempotencyKey?: string;
  /** Who the run is about. One active run per workflow and hero, unless `allowMultiple`. */
  readonly hero?: HeroRef;
  readonly allowMultiple?: boolean;
  readonly delay?: Duration;
  readonly startAt?: Date | number;
  readonly priority?: number;
  readonly tags?: readonly string[];
  /** The caller's own open transaction (one connection, not a pool): the run exists if and when it commits. */
  readonly tx?: unknown;
}

export const startOptions: ReadonlySet<string> = new Set([
  "idempotencyKey",
  "hero",
  "allowMultiple",
  "delay",
  "startAt",
  "priority",
  "tags",
  "tx",
] satisfies (keyof StartOptions)[]);

export type Origin = Pick<WorkflowDefinition, "name" | "version" | "queue" | "priority" | "tags" | "hero">;

/** What all runs of one start have in common is checked once; the function it returns makes the rows. */
export function birthOf(origin: Origin, options: StartOptions, ids: IdSource): (input: unknown) => NewRun {
  const { name, version } = origin;
  const hero = checkHero(name, origin.hero, options.hero);
  const queue = origin.queue ?? name;
  const priority = checkPriority(options.priority ?? origin.priority);
  const heroType = hero?.type ?? null;
  const heroId = hero?.id ?? null;
  const heroKey =
    hero === null || (options.allowMultiple ?? origin.hero.allowMultiple) ? null : heroKeyOf(name, hero.type, hero.id);
  const given = options.tags === undefined ? origin.tags : checkTags([...origin.tags, ...checkTags(options.tags)]);
  const tags = tagsOfStart(name, [...given]);
  const startKey = options.idempotencyKey === undefined ? null : checkName("idempotency key", options.idempotencyKey);
  const due = dueOf(options);
  const what = { what: `the input of workflow "${name}"` };
  return (input) => ({
    id: ids.next(),
    workflow: name,
    version,
    queue,
    priority,
    input: encode(input, what),
    heroType,
    heroId,
    heroKey,
    tags,
    startKey,
    parentId: null,
    parentNode: null,
    parentIndex: null,
    parentAttempt: null,
    due,
  });
}

function dueOf({ delay, startAt }: StartOptions): NewRun["due"] {
  if (delay !== undefined && startAt !== undefined)
    throw new InvalidInputError("Give either `delay` or `startAt`, not both.");
  if (delay !== undefined) return { kind: "in", ms: parseDuration(delay, "delay") };
  if (startAt !== undefined) return { kind: "at", ms: instant("startAt", startAt) };
  return { kind: "now" };
}

export function instant(what: string, value: Date | number): number {
  const ms = Number(value);
  if (Number.isFinite(ms) && Math.abs(ms) <= 8.64e15) return Math.floor(ms);
  const given = typeof value === "string" ? JSON.stringify(value) : String(value);
  throw new InvalidInputError(
    `${what} is not a valid date but ${given}; give a Date, or a number of milliseconds since 1970.`,
  );
}
