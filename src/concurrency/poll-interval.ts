/**
 * How often to look for something that no notification tells of (on databases without notifications): often while things
 * happen, less and less the longer nothing does. It is noticed late by at most a tenth of the quiet before it, and a
 * process that falls silent looks some fifty times more, not for ever.
 */
const shortestLookMs = 20;

export const nextLookIn = (quietMs: number, longestMs: number): number =>
  Math.min(longestMs, Math.max(shortestLookMs, quietMs / 10));
