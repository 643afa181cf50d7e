/** What the screens about limits share: types, addresses, and limits in words. */
import type { Answer } from "../../api/api.js";
import { formatCount } from "../../ui/format.js";
import { formatDuration } from "../../ui/time.js";

export type Limit = Answer<"listLimits">["limits"][number];
export type LimitPage = Answer<"getLimit">;
export type Lane = LimitPage["lanes"][number];
type Rate = NonNullable<Limit["rate"]>;

export const limitAddress = (name: string): string => `/limits/${encodeURIComponent(name)}`;

const second = 1_000;
const spans: ReadonlyMap<number, string> = new Map([
  [second, "a second"],
  [60 * second, "a minute"],
  [3_600 * second, "an hour"],
  [86_400 * second, "a day"],
]);

/** "90,000 a minute", "10 in 5.0 s". */
const rateText = ({ limit, perMs }: Rate): string =>
  `${formatCount(limit)} ${spans.get(perMs) ?? `in ${formatDuration(perMs)}`}`;

/** What values allow, in a few words: "60 at a time", "90,000 a minute, 5 more at once". */
export function allowances({ concurrency, rate }: Limit["inForce"]): readonly string[] {
  const burst = rate === null || rate.burst === 0 ? "" : `, ${formatCount(rate.burst)} more at once`;
  const parts = [
    concurrency === null ? null : `${formatCount(concurrency)} at a time`,
    rate === null ? null : `${rateText(rate)}${burst}`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? ["any number"] : parts;
}

const fullSentences = {
  wait: null,
  skip: "skipped",
  fail: "failed",
  cancelOldest: "started in place of the oldest",
} as const;

/** What becomes of runs that find no free slot; null: they wait. */
export function whenFull({ onFull, backlog }: Pick<Limit, "onFull" | "backlog">): string | null {
  const sentence = fullSentences[onFull];
  if (sentence === null) return null;
  return backlog === null || backlog === 0
    ? `further runs are ${sentence}`
    : `${formatCount(backlog)} may wait, further runs are ${sentence}`;
}

/** Those that wait come first; the others stay in the order of their names, so that no row jumps. */
export const byNeed = (a: Limit, b: Limit): number =>
  Number(b.waiting > 0) - Number(a.waiting > 0) || (a.name < b.name ? -1 : 1);
