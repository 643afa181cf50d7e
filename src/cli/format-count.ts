/** Formats counts for display. */

/** Returns a count with its noun, such as "1 run" or "1,200 runs". */
export const formatCount = (number: number, noun: string): string =>
  `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
