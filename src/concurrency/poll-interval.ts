/**
 * How often to look for something that no notification tells of (on databases without notifications): often while things
 * happen, less and less the longer nothing does. It is noticed late by at most a tenth of the quiet before it, and a
 * process that falls silent looks some fifty times more, not for ever.
 */
const minPollIntervalMs = 20;

export const adaptivePollInterval = (idleMs: number, maxIntervalMs: number): number =>
  Math.min(maxIntervalMs, Math.max(minPollIntervalMs, idleMs / 10));
