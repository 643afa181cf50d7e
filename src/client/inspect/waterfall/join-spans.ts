/** Joins spans of one row, so that few remain. */
import type { WaterfallSpan } from "./rows.js";

/**
 * Joins spans that overlap or touch, of one kind, the failed ones apart. If more than `limit` remain, those with the smallest gaps
 * between them are joined as well, so that long idle times stay visible.
 */
export function joinSpans(spans: readonly WaterfallSpan[], limit: number): WaterfallSpan[] {
  const alike = groupBy(spans, ({ kind, state }) => (limit === 1 ? "" : `${kind} ${state === "failed"}`));
  const chains = [...alike.values()].map((members) => joinOverlapping(members.toSorted((a, b) => a.from - b.from)));
  const breaks = largestGaps(chains, Math.max(0, limit - chains.length));
  return chains.flatMap((chain) => joinExcept(chain, breaks)).toSorted((a, b) => a.from - b.from);
}

export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

function joinOverlapping(sorted: readonly WaterfallSpan[]): WaterfallSpan[] {
  const joined: WaterfallSpan[] = [];
  for (const span of sorted) {
    const last = joined.at(-1);
    if (last !== undefined && (last.to === null || span.from <= last.to)) joined[joined.length - 1] = join(last, span);
    else joined.push(span);
  }
  return joined;
}

/** The spans behind the `count` largest gaps. */
function largestGaps(chains: readonly (readonly WaterfallSpan[])[], count: number): ReadonlySet<WaterfallSpan> {
  const gaps = chains.flatMap((chain) =>
    chain.slice(1).map((span, index) => ({ span, gap: span.from - (chain[index]?.to ?? span.from), index })),
  );
  // Among equal gaps, those of a golden spiral are chosen: they are spread evenly over the row.
  const spread = (index: number) => (index * 0.618_033_988_75) % 1;
  gaps.sort((a, b) => b.gap - a.gap || spread(a.index) - spread(b.index));
  return new Set(gaps.slice(0, count).map(({ span }) => span));
}

function joinExcept(chain: readonly WaterfallSpan[], breaks: ReadonlySet<WaterfallSpan>): WaterfallSpan[] {
  const joined: WaterfallSpan[] = [];
  for (const span of chain) {
    const last = joined.at(-1);
    if (last === undefined || breaks.has(span)) joined.push(span);
    else joined[joined.length - 1] = join(last, span);
  }
  return joined;
}

const join = (a: WaterfallSpan, b: WaterfallSpan): WaterfallSpan => ({
  ...a,
  waitsFor: a.waitsFor === b.waitsFor ? a.waitsFor : null,
  state: a.to === null || b.to !== null ? a.state : b.state,
  outcome: a.outcome === b.outcome ? a.outcome : null,
  attempt: null,
  worker: a.worker === b.worker ? a.worker : null,
  to: a.to === null || b.to === null ? null : Math.max(a.to, b.to),
  dueAt: null,
  isCut: a.isCut || b.isCut,
  reason: a.reason === b.reason ? a.reason : null,
  count: a.count + b.count,
});
