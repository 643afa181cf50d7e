import type { Declared } from "./definition.js";

/**
 * The queues that runs of a workflow may be parked in beside its own: those that its steps have, and those that they had in
 * earlier versions of the code, as the registry remembers them.
 */
export const stepQueues = (declared: Declared | null, remembered: readonly string[] = []): ReadonlySet<string> =>
  new Set([...(declared?.queues ?? []), ...remembered]);
