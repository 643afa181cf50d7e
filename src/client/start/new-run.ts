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
import { collectStartTags } from "../../telemetry/call-interception.js";
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

export type StartableDefinition = Pick<WorkflowDefinition, "name" | "version" | "queue" | "priority" | "tags" | "hero">;

/** What all runs of one start have in common is checked once; the function it returns makes the rows. */
export function newRunFactory(
  definition: StartableDefinition,
  options: StartOptions,
  ids: IdSource,
): (input: unknown) => NewRun {
  const { name, version } = definition;
  const hero = checkHero(name, definition.hero, options.hero);
  const queue = definition.queue ?? name;
  const priority = checkPriority(options.priority ?? definition.priority);
  const heroType = hero?.type ?? null;
  const heroId = hero?.id ?? null;
  const heroKey =
    hero === null || (options.allowMultiple ?? definition.hero.allowMultiple)
      ? null
      : heroKeyOf(name, hero.type, hero.id);
  const allTags =
    options.tags === undefined ? definition.tags : checkTags([...definition.tags, ...checkTags(options.tags)]);
  const tags = collectStartTags(name, [...allTags]);
  const startKey = options.idempotencyKey === undefined ? null : checkName("idempotency key", options.idempotencyKey);
  const due = dueOf(options);
  const encodeOptions = { label: `the input of workflow "${name}"` };
  return (input) => ({
    id: ids.next(),
    workflow: name,
    version,
    queue,
    priority,
    input: encode(input, encodeOptions),
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
  if (startAt !== undefined) return { kind: "at", ms: parseInstant("startAt", startAt) };
  return { kind: "now" };
}

export function parseInstant(what: string, value: Date | number): number {
  const ms = Number(value);
  if (Number.isFinite(ms) && Math.abs(ms) <= 8.64e15) return Math.floor(ms);
  const shownValue = typeof value === "string" ? JSON.stringify(value) : String(value);
  throw new InvalidInputError(
    `${what} is not a valid date but ${shownValue}; give a Date, or a number of milliseconds since 1970.`,
  );
}
