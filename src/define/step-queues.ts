import type { DeclaredStepsInfo } from "./definition.js";

/**
 * The queues that runs of a workflow may be parked in beside the workflow's own: the queues of its steps, and the queues
 * that the registry remembers from earlier versions of the code.
 */
export const stepQueues = (
  declared: DeclaredStepsInfo | null,
  earlierQueues: readonly string[] = [],
): ReadonlySet<string> => new Set([...(declared?.queues ?? []), ...earlierQueues]);
