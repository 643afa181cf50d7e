/** The cost of an operation, and whether it exceeds the budget. */

/** Amounts by name: "statements", "bytes", "events inserted", "calls of commit" … A missing name means zero. */
export type Cost = Readonly<Record<string, number>>;

export interface Excess {
  readonly what: string;
  readonly from: number;
  readonly to: number;
}

/** Amounts above the budget. An amount without a budget must be zero. */
export function excesses(budget: Cost, measured: Cost): Excess[] {
  return differences(budget, measured).filter(({ from, to }) => to > from);
}

/** Amounts below the budget: the budget should be lowered, so that a later increase is noticed. */
export function savings(budget: Cost, measured: Cost): Excess[] {
  return differences(budget, measured).filter(({ from, to }) => to < from);
}

function differences(budget: Cost, measured: Cost): Excess[] {
  const names = new Set([...Object.keys(budget), ...Object.keys(measured)]);
  return [...names].map((what) => ({ what, from: budget[what] ?? 0, to: measured[what] ?? 0 }));
}

/** "statements rose from 1 to 2" */
export const describeExcess = ({ what, from, to }: Excess): string =>
  `${what} ${to > from ? "rose" : "fell"} from ${from} to ${to}`;
