import type { DeclaredStepsInfo } from "./definition.js";

/**
 * The queues that runs of a workflow may be parked in beside its own: those that its steps have, and those that they had in
 * earlier versions of the code, as the registry remembers them.
 */
export const stepQueues = (
  declared: DeclaredStepsInfo | null,
  earlierQueues: readonly string[] = [],
): ReadonlySet<string> => new Set([...(declared?.queues ?? []), ...earlierQueues]);
