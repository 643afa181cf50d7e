/**
 * The poll interval for databases without notifications. The interval is a tenth of the time since the last activity, so a
 * process notices a change after at most a tenth of the idle time that preceded the change. A process that becomes idle
 * polls about fifty times before its interval has grown to a second.
 */
const minPollIntervalMs = 20;

export const adaptivePollInterval = (idleMs: number, maxIntervalMs: number): number =>
  Math.min(maxIntervalMs, Math.max(minPollIntervalMs, idleMs / 10));
