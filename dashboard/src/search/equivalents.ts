/** A search as a question to the API, as a command, and as TypeScript. */
import type { Query } from "../api/api.js";
import { instantOf, type RunFilter, type When } from "./run-search.js";
import { parseSpan } from "./span.js";

/** @param now what "24 hours ago" counts from, by the clock of the database */
export function toApiQuery(filter: RunFilter, now: number): Query {
  const { hero, key, parent, after, before, ...same } = filter;
  return {
    ...same,
    ...(hero === undefined ? {} : { heroType: hero.type, heroId: hero.id }),
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(parent === undefined ? {} : { parentId: parent }),
    ...(after === undefined ? {} : { createdAfter: instantOf(after, now) }),
    ...(before === undefined ? {} : { createdBefore: instantOf(before, now) }),
  };
}

/** A word of a command line. Single quotes keep everything else from the shell. */
const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

const cliTime = (when: When): string => (when.kind === "ago" ? when.span : new Date(when.ms).toISOString());

/** The command that lists the same; null if the command line has no option for a part of the filter. */
export function toCommand(filter: RunFilter): string | null {
  const { hero, after, before, parent, active } = filter;
  if ((parent !== undefined && parent !== "none") || active === false) return null;
  const options: readonly (readonly [string, string | undefined])[] = [
    ["workflow", filter.workflow],
    ["status", filter.status],
    ["hero", hero === undefined ? undefined : `${hero.type}:${hero.id}`],
    ["key", filter.key],
    ["tag", filter.tag],
    ["version", filter.version],
    ["step", filter.step],
    ["error", filter.error],
    ["fingerprint", filter.fingerprint],
    ["took-at-least", filter.tookAtLeast],
    ["took-at-most", filter.tookAtMost],
    ["created-after", after === undefined ? undefined : cliTime(after)],
    ["created-before", before === undefined ? undefined : cliTime(before)],
  ];
  const words = options.flatMap(([name, value]) =>
    // A value that begins with a dash would be read as an option.
    value === undefined
      ? []
      : value.startsWith("-")
        ? [`--${name}=${shellWord(value)}`]
        : [`--${name}`, shellWord(value)],
  );
  if (active === true) words.push("--active");
  if (parent === "none") words.push("--root");
  return ["pawl runs", ...words].join(" ");
}

const dateCode = (when: When): string =>
  when.kind === "ago"
    ? `new Date(Date.now() - ${(parseSpan(when.span) ?? 0).toLocaleString("en").replaceAll(",", "_")})`
    : `new Date(${JSON.stringify(new Date(when.ms).toISOString())})`;

export function toTypeScript(filter: RunFilter): string {
  const { hero, key, parent, after, before, ...same } = filter;
  const fields = Object.entries(same).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  if (hero !== undefined) fields.push(`hero: { type: ${JSON.stringify(hero.type)}, id: ${JSON.stringify(hero.id)} }`);
  if (key !== undefined) fields.push(`idempotencyKey: ${JSON.stringify(key)}`);
  if (parent !== undefined) fields.push(`parentId: ${parent === "none" ? "null" : JSON.stringify(parent)}`);
  if (after !== undefined) fields.push(`createdAfter: ${dateCode(after)}`);
  if (before !== undefined) fields.push(`createdBefore: ${dateCode(before)}`);
  return `const { runs, next } = await pawl.runs(${fields.length === 0 ? "" : `{ ${fields.join(", ")} }`});`;
}
