/** Numbers as people read them. */
export const formatCount = (value: number): string => value.toLocaleString("en");

/** A count that stops at a limit: "10,000+". */
export const formatCapped = (value: number, isCapped: boolean): string => `${formatCount(value)}${isCapped ? "+" : ""}`;

export function formatBytes(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

export const formatPercent = (share: number): string =>
  `${(share * 100).toFixed(share > 0.995 && share < 1 ? 2 : 1).replace(/\.0$/, "")} %`;

/** "1 run", "3 runs". */
export const plural = (count: number, word: string, several = `${word}s`): string =>
  `${formatCount(count)} ${count === 1 ? word : several}`;

/**
 * Characters that cannot be seen, or that change the direction of text, are written as escapes: otherwise a value could look
 * like another one. Tabs and line ends stay.
 */
export const escapeHidden = (text: string): string =>
  text.replace(/(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, (character) => {
    const code = (character.codePointAt(0) as number).toString(16).padStart(4, "0");
    return `\\u${code.length > 4 ? `{${code}}` : code}`;
  });
