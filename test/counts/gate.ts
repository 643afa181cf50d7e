/** What something costs, and whether that is more than it may. */

/** Amounts by name: "statements", "bytes", "events inserted", "calls of commit" … What is not named is none. */
export type Cost = Readonly<Record<string, number>>;

export interface Excess {
  readonly what: string;
  readonly from: number;
  readonly to: number;
}

/** What rose above its budget. Something that has no budget may not happen at all. */
export function excesses(budget: Cost, measured: Cost): Excess[] {
  return differences(budget, measured).filter(({ from, to }) => to > from);
}

/** What fell below it: then the budget can be lowered, so that it does not rise again unseen. */
export function savings(budget: Cost, measured: Cost): Excess[] {
  return differences(budget, measured).filter(({ from, to }) => to < from);
}

function differences(budget: Cost, measured: Cost): Excess[] {
  const names = new Set([...Object.keys(budget), ...Object.keys(measured)]);
  return [...names].map((what) => ({ what, from: budget[what] ?? 0, to: measured[what] ?? 0 }));
}

/** "statements rose from 1 to 2" */
export const inWords = ({ what, from, to }: Excess): string =>
  `${what} ${to > from ? "rose" : "fell"} from ${from} to ${to}`;
