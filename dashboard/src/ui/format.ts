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

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** A duration in at most two units: "420 ms", "1.5 s", "2 m 05 s", "3 h 20 m", "12 d 4 h". */
export function formatDuration(ms: number): string {
  const span = Math.max(0, Math.abs(ms));
  if (span < second) return `${Math.round(span)} ms`;
  if (span < 10 * second) return `${(span / second).toFixed(1)} s`;
  if (span < minute) return `${Math.round(span / second)} s`;
  const twoUnits = (large: number, largeName: string, small: number, smallName: string) => {
    const whole = Math.floor(span / large);
    return `${whole} ${largeName} ${String(Math.floor((span - whole * large) / small)).padStart(2, "0")} ${smallName}`;
  };
  if (span < hour) return twoUnits(minute, "m", second, "s");
  if (span < day) return twoUnits(hour, "h", minute, "m");
  if (span < 100 * day) return twoUnits(day, "d", hour, "h");
  return `${Math.round(span / day).toLocaleString("en")} d`;
}
