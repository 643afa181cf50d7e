/** Durations as people type them into the search bar. */
const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  sec: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  hr: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
  days: 86_400_000,
  w: 604_800_000,
};

/** The milliseconds of "5m", "1h30m" or "250ms"; null if the text is no duration. */
export function parseSpan(text: string): number | null {
  const part = /(\d+(?:\.\d+)?)([a-z]+)/y;
  let ms = 0;
  if (text === "" || text.length > 40) return null;
  while (part.lastIndex < text.length) {
    const [, amount, unit] = part.exec(text) ?? [];
    const scale = unitMs[unit ?? ""];
    if (amount === undefined || scale === undefined) return null;
    ms += Number(amount) * scale;
  }
  return Math.round(ms);
}
