/** Formats counts for display. */

/** "1 run", "1,200 runs". */
export const formatCount = (number: number, noun: string): string =>
  `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
