/**
 * The poll interval for databases without notifications. It is a tenth of the time since the last activity, so a change is
 * noticed with a delay of at most a tenth of the idle time before it, and a process that becomes idle polls about fifty
 * times before its interval has grown to a second.
 */
const minPollIntervalMs = 20;

export const adaptivePollInterval = (idleMs: number, maxIntervalMs: number): number =>
  Math.min(maxIntervalMs, Math.max(minPollIntervalMs, idleMs / 10));
