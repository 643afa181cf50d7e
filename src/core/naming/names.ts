/** Names that users give to workflows, steps and the like, and the checks that they pass. */
import { InvalidInputError } from "../errors/errors.js";

const NOUNS = {
  workflow: "workflow name",
  step: "step name",
  node: "node name",
  job: "job name",
  signal: "signal name",
  "signal key": "signal key",
  queue: "queue name",
  worker: "worker name",
  tag: "tag",
  "idempotency key": "idempotency key",
  "hero type": "hero type",
  "hero id": "hero id",
  version: "version",
  limit: "limit",
  "patch id": "patch id",
  user: "name of a user",
  fingerprint: "fingerprint",
  schedule: "schedule name",
  app: "name of the application",
} as const;

/** The kind of thing that a name identifies. */
export type NameKind = keyof typeof NOUNS;

export const NAME_LIMIT_BYTES = 200;
// A step's name is checked at each call of the step. Most names match this pattern, which takes 32 ns; all checks take 102
// ns.
const PLAIN_NAME = /^[\w.-]{1,60}$/;
const CONTROL_CHARACTER = /\p{Cc}/u;
const LONE_SURROGATE = /\p{Cs}/u;

/**
 * Returns the name if every store can keep and compare it. Inner spaces, quotes, slashes, `%` and emoji are allowed. Spaces
 * at the ends are refused because some collations ignore them, and so are characters that UTF-8 or a terminal cannot show.
 */
export function checkName(kind: NameKind, name: unknown, limitBytes = NAME_LIMIT_BYTES): string {
  if (typeof name !== "string") throw invalid(kind, typeof name, "must be a string");
  if (PLAIN_NAME.test(name) && name.length <= limitBytes) return name;

  if (name === "") throw invalid(kind, '""', "must not be empty");
  const bytes = Buffer.byteLength(name);
  if (bytes > limitBytes) throw invalid(kind, quote(name), `is ${bytes} bytes; the limit is ${limitBytes}`);
  if (CONTROL_CHARACTER.test(name)) throw invalid(kind, quote(name), "contains a control character");
  if (LONE_SURROGATE.test(name)) throw invalid(kind, quote(name), "contains half of a surrogate pair");
  if (name.trim() !== name) throw invalid(kind, quote(name), "must not begin or end with a space");
  if (kind === "step" && name.includes("#")) {
    throw invalid(kind, quote(name), 'contains "#", which Pawl adds itself when a name is used again ("send#2")');
  }
  return name;
}

/** The number of tags is limited because they are a column of the run's row, which workers read with every claim. */
export const MAX_TAGS = 100;

/** Returns the tags if there are at most 100 and each is a valid name. */
export function checkTags(tags: unknown): string[] {
  if (!Array.isArray(tags)) throw new InvalidInputError(`Tags are a list of texts, not a ${typeof tags}.`);
  if (tags.length > MAX_TAGS)
    throw new InvalidInputError(`A run has at most ${MAX_TAGS} tags, not ${tags.length}; put the rest into its input.`);
  return tags.map((tag) => checkName("tag", tag));
}

const REASON_LIMIT = 4_000;

/** Returns the reason of a pause or a cancellation, cut to 4,000 characters; null when the caller gave no reason. */
export function checkReason(reason: unknown): string | null {
  if (reason === undefined || reason === null) return null;
  if (typeof reason !== "string") throw new InvalidInputError(`A reason is a text, not a ${typeof reason}.`);
  return reason.length > REASON_LIMIT ? `${reason.slice(0, REASON_LIMIT)}…` : reason;
}

function quote(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}

function invalid(kind: NameKind, shownName: string, problem: string): InvalidInputError {
  return new InvalidInputError(`The ${NOUNS[kind]} ${shownName} ${problem}; choose another.`);
}
