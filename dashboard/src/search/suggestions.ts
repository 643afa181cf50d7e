/** What the search bar offers while a person types. */
import { qualifiers, searchedStatuses } from "./run-search.js";
import { quote, tokensOf } from "./tokens.js";

export interface Suggestion {
  /** What stands in the place of the word when it is chosen. */
  readonly text: string;
  readonly about: string;
  /** Whether a value still has to follow. */
  readonly isUnfinished: boolean;
}

export interface Suggestions {
  /** The part of the text that a suggestion replaces. */
  readonly start: number;
  readonly end: number;
  readonly items: readonly Suggestion[];
}

const maxItems = 14;

/** Values that are worth offering although any other can be typed. */
const commonValues: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  active: [
    ["true", "have not ended"],
    ["false", "have ended"],
  ],
  took: [
    [">1m", "more than a minute"],
    [">5m", "more than five minutes"],
    [">1h", "more than an hour"],
    ["<1s", "less than a second"],
  ],
  after: [
    ["-15m", "in the last 15 minutes"],
    ["-1h", "in the last hour"],
    ["-24h", "in the last 24 hours"],
    ["-7d", "in the last 7 days"],
  ],
  before: [
    ["-1h", "more than an hour ago"],
    ["-24h", "more than 24 hours ago"],
    ["-7d", "more than 7 days ago"],
  ],
  parent: [["none", "are no children"]],
};

/** @param caret where the person types in the text */
export function suggest(text: string, caret: number, workflows: readonly string[]): Suggestions {
  const tokens = tokensOf(text);
  const word = tokens.find(({ start, end }) => start < caret && caret <= end);
  const used = new Set(tokens.filter((token) => token !== word).map(({ name }) => name));
  if (word === undefined || word.name === null || caret < word.valueStart) {
    const typed = word === undefined ? "" : text.slice(word.start, caret).toLowerCase();
    const items = qualifiers
      .filter(({ name }) => name.startsWith(typed) && (name === "took" || !used.has(name)))
      .map(({ name, about }) => ({ text: `${name}:`, about, isUnfinished: true }));
    return { start: word?.start ?? caret, end: word?.end ?? caret, items };
  }
  const name = word.name;
  const typed = word.value.toLowerCase();
  const items = valuesOf(name, workflows)
    .filter(([value]) => value.toLowerCase().includes(typed))
    .slice(0, maxItems)
    .map(([value, about]) => ({ text: `${name}:${quote(value)}`, about, isUnfinished: false }));
  const isComplete = items.length === 1 && items[0]?.text === text.slice(word.start, word.end);
  return { start: word.start, end: word.end, items: isComplete ? [] : items };
}

function valuesOf(name: string, workflows: readonly string[]): readonly (readonly [string, string])[] {
  if (name === "workflow") return workflows.map((workflow) => [workflow, ""] as const);
  if (name === "status") return searchedStatuses.map((status) => [status, ""] as const);
  return commonValues[name] ?? [];
}
