/**
 * Of a workflow and hero, and of a workflow and idempotency key, there may be only one run. When another client has started it in
 * a transaction that is still open, the database makes a second start wait for the end of that transaction. Starts without such a
 * key must not wait with it.
 */
export const hasUniqueKey = (run: { readonly startKey: string | null; readonly heroKey: string | null }): boolean =>
  run.startKey !== null || run.heroKey !== null;

/** The key of a run that is to be the only active one of its workflow about its hero. */
export const heroKeyOf = (workflow: string, heroType: string, heroId: string | null): string =>
  JSON.stringify([workflow, heroType, heroId]);
