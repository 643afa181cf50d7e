/**
 * Whether the new run has an idempotency key or a hero key, which are unique in the database. If another client has used
 * the same key in a transaction that is still open, the database makes this start wait for that transaction. Starts without
 * a unique key are written in other batches, because they would have to wait too.
 */
export const hasUniqueKey = (run: { readonly startKey: string | null; readonly heroKey: string | null }): boolean =>
  run.startKey !== null || run.heroKey !== null;

/** The unique key of a run that must be the only active run of its workflow for its hero. */
export const heroKeyOf = (workflow: string, heroType: string, heroId: string | null): string =>
  JSON.stringify([workflow, heroType, heroId]);
