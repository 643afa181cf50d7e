/**
 * Whether the new run has an idempotency key or a hero key, which are unique in the database. If another client has used the
 * same key in a transaction that is still open, the database makes the second start wait for that transaction. Starts
 * without such a key must not be batched with it, or they would wait too.
 */
export const hasUniqueKey = (run: { readonly startKey: string | null; readonly heroKey: string | null }): boolean =>
  run.startKey !== null || run.heroKey !== null;

/** The unique key of a run that must be the only active run of its workflow for its hero. */
export const heroKeyOf = (workflow: string, heroType: string, heroId: string | null): string =>
  JSON.stringify([workflow, heroType, heroId]);
