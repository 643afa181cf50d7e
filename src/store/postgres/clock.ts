/** Two clocks: the store's (the database's, or a virtual one in tests) and the real one, which leases use. */

/** The database's clock in epoch milliseconds. `now()` would return the same instant throughout a transaction. */
export const realNow = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/** The store's clock inside a statement. */
export interface SqlClock {
  /** The SQL expression. A virtual clock is a bound value: `now` calls `bind` once for each entry of `values`. */
  now(bind: () => string): string;
  values(): readonly number[];
  readonly isVirtual: boolean;
}

export function createSqlClock(virtualClock: (() => number) | undefined): SqlClock {
  if (virtualClock === undefined) return { now: () => realNow, values: () => [], isVirtual: false };
  return { now: (bind) => `${bind()}::bigint`, values: () => [Math.floor(virtualClock())], isVirtual: true };
}
