/** The search bar of the list of runs: qualifiers such as `status:failed took:>5m`, and what is wrong with a search. */
import type { RunStatus } from "../ui/status.js";
import { parseSpan } from "./span.js";
import { quote, type Token, tokensOf } from "./tokens.js";

/** Also in `ui/status.tsx`, which tests without a browser cannot load. */
export const searchedStatuses = [
  "running",
  "waiting",
  "pending",
  "paused",
  "failed",
  "completed",
  "canceled",
] as const satisfies readonly RunStatus[];

/** An instant, or how long ago it was. */
export type When = { readonly kind: "at"; readonly ms: number } | { readonly kind: "ago"; readonly span: string };

export interface RunFilter {
  readonly workflow?: string;
  readonly status?: RunStatus;
  readonly hero?: { readonly type: string; readonly id: string };
  readonly tag?: string;
  readonly step?: string;
  readonly error?: string;
  readonly version?: string;
  readonly tookAtLeast?: string;
  readonly tookAtMost?: string;
  readonly key?: string;
  /** The id of the parent; "none": only runs without one. */
  readonly parent?: string;
  readonly fingerprint?: string;
  readonly active?: boolean;
  readonly after?: When;
  readonly before?: When;
}

export interface Qualifier {
  readonly name: string;
  readonly about: string;
  readonly example: string;
  /** The part of the filter that a value stands for, or a sentence that says why it cannot be read. */
  readonly read: (value: string) => RunFilter | string;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const qualifiers: readonly Qualifier[] = [
  { name: "workflow", about: "runs of a workflow", example: "workflow:order", read: (workflow) => ({ workflow }) },
  { name: "status", about: "runs with a status", example: "status:paused", read: readStatus },
  { name: "error", about: "a text in the error", example: 'error:"card was declined"', read: (error) => ({ error }) },
  {
    name: "step",
    about: "runs that failed, are paused or wait at a step",
    example: "step:charge",
    read: (step) => ({ step }),
  },
  { name: "hero", about: "runs about a hero", example: "hero:User/42", read: readHero },
  { name: "tag", about: "runs with a tag", example: "tag:vip", read: (tag) => ({ tag }) },
  { name: "took", about: "how long runs have taken", example: "took:>5m", read: readTook },
  { name: "after", about: "created then or later", example: "after:-24h", read: (text) => readWhen("after", text) },
  {
    name: "before",
    about: "created earlier",
    example: "before:2026-01-31",
    read: (text) => readWhen("before", text),
  },
  { name: "active", about: "runs that have not ended", example: "active:true", read: readActive },
  { name: "version", about: "a version of the workflow", example: "version:2", read: (version) => ({ version }) },
  { name: "key", about: "an idempotency key", example: "key:cart-77", read: (key) => ({ key }) },
  { name: "parent", about: "children of a run; none: no children", example: "parent:none", read: readParent },
  {
    name: "fingerprint",
    about: "errors that are alike, as Errors groups them",
    example: "fingerprint:8a45dffd041bc0ea",
    read: (fingerprint) => ({ fingerprint }),
  },
];

function readStatus(value: string): RunFilter | string {
  const status = searchedStatuses.find((one) => one === value.toLowerCase());
  return status === undefined ? `There is no status “${value}”. There are ${searchedStatuses.join(", ")}.` : { status };
}

function readHero(value: string): RunFilter | string {
  const [, type, id] = /^([^/]+)\/(.+)$/.exec(value) ?? [];
  if (type === undefined || id === undefined) return "hero: takes a type and an id, such as hero:User/42.";
  return { hero: { type, id } };
}

function readTook(value: string): RunFilter | string {
  const [, sign, span = ""] = /^(>|<)=?(.+)$/.exec(value) ?? [];
  if (sign === undefined || parseSpan(span) === null)
    return "took: takes > or < and a duration, such as took:>5m or took:<1s.";
  return sign === ">" ? { tookAtLeast: span } : { tookAtMost: span };
}

function readActive(value: string): RunFilter | string {
  if (value === "true" || value === "false") return { active: value === "true" };
  return "active: takes true (runs that have not ended) or false (runs that have).";
}

function readParent(value: string): RunFilter | string {
  if (value === "none" || uuid.test(value)) return { parent: value.toLowerCase() };
  return "parent: takes the whole id of a run, or none for runs that are no children.";
}

function readWhen(name: "after" | "before", value: string): RunFilter | string {
  const span = value.replace(/^-/, "");
  if (parseSpan(span) !== null) return { [name]: { kind: "ago", span } };
  const ms = /^\d{4}-/.test(value) ? Date.parse(value) : Number.NaN;
  if (!Number.isNaN(ms)) return { [name]: { kind: "at", ms } };
  return `${name}: takes a date (2026-01-31), a time (2026-01-31T09:00Z) or how long ago it was (-24h).`;
}

export interface RunSearch {
  readonly filter: RunFilter;
  readonly tokens: readonly Token[];
  /** What is wrong, in full sentences. */
  readonly problems: readonly string[];
  /** The run that the whole text names, which is to be opened. */
  readonly runId: string | null;
}

export function parseSearch(text: string): RunSearch {
  const tokens = tokensOf(text);
  const [only] = tokens;
  if (tokens.length === 1 && only?.name === null && uuid.test(only.value))
    return { filter: {}, tokens, problems: [], runId: only.value.toLowerCase() };
  let filter: RunFilter = {};
  const problems: string[] = [];
  for (const token of tokens) {
    const part = readTerm(token);
    const repeated = typeof part === "string" ? undefined : Object.keys(part).find((field) => field in filter);
    if (typeof part === "string") problems.push(part);
    else if (repeated !== undefined) problems.push(`${token.name}: is there twice. A run has to fit one value.`);
    else filter = { ...filter, ...part };
  }
  return { filter, tokens, problems, runId: null };
}

function readTerm({ name, value, isClosed }: Token): RunFilter | string {
  if (name === null) return freeTextProblem(value);
  const qualifier = qualifiers.find((one) => one.name === name);
  if (qualifier === undefined) return unknownProblem(name);
  if (!isClosed) return `The quote after ${name}: is not closed.`;
  if (value === "") return `${name}: needs a value, such as ${qualifier.example}.`;
  return qualifier.read(value);
}

function freeTextProblem(value: string): string {
  const text = value.length > 40 ? `${value.slice(0, 40)}…` : value;
  if (/^-[a-z]+:/i.test(value)) return `“${text}” cannot be read: qualifiers cannot be negated.`;
  return `“${text}” is no id of a run. Say where to search for it, such as error:${quote(text)} or tag:${quote(text)}.`;
}

function unknownProblem(name: string): string {
  const near = qualifiers.find((one) => one.name.startsWith(name.slice(0, 3)) || name.startsWith(one.name));
  return `There is no qualifier “${name}:”.${near === undefined ? "" : ` Did you mean “${near.name}:”?`}`;
}

/** The text with another value of a qualifier; null removes it. The other words stay as they are. */
export function withTerm(text: string, name: string, value: string | null): string {
  const kept = tokensOf(text)
    .filter((token) => token.name !== name)
    .map(({ start, end }) => text.slice(start, end));
  return [...kept, ...(value === null ? [] : [`${name}:${quote(value)}`])].join(" ");
}

/** A search for runs that fit all of these. */
export const searchOf = (terms: Readonly<Record<string, string>>): string =>
  Object.entries(terms)
    .map(([name, value]) => `${name}:${quote(value)}`)
    .join(" ");

/** The instant that a time of a search stands for, in whole milliseconds: the API refuses fractions. */
export const instantOf = (when: When, now: number): number =>
  when.kind === "at" ? when.ms : Math.round(now - (parseSpan(when.span) ?? 0));
