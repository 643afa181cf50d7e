/** Two clocks: the store's (the database's, or a virtual one that tests give) and the real one that leases live by. */

/** The database's clock in epoch milliseconds. `now()` would stand still inside a transaction. */
export const realNow = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/** The store's clock inside a statement. */
export interface SqlClock {
  /** The expression; a virtual clock is bound, so `bind` is called exactly as often as `values` has entries. */
  now(bind: () => string): string;
  values(): readonly number[];
  readonly isVirtual: boolean;
}

export function createSqlClock(virtualClock: (() => number) | undefined): SqlClock {
  if (virtualClock === undefined) return { now: () => realNow, values: () => [], isVirtual: false };
  return { now: (bind) => `${bind()}::bigint`, values: () => [Math.floor(virtualClock())], isVirtual: true };
}
