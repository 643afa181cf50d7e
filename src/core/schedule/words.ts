/** Small pieces of plain language. */

/** A value that a user has given, for errors. */
export function shown(value: unknown): string {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "an invalid Date" : value.toISOString();
  if (typeof value === "string") return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (value === null || value === undefined) return String(value);
  return Array.isArray(value) ? "a list" : `${typeof value === "object" ? "an" : "a"} ${typeof value}`;
}

/** `a`, `a and b`, `a, b and c`. */
export function listed(parts: readonly string[], conjunction = "and"): string {
  if (parts.length < 2) return parts.join();
  return `${parts.slice(0, -1).join(", ")} ${conjunction} ${parts.at(-1)}`;
}

/** `1st`, `2nd`, `11th`. */
export function ordinal(value: number): string {
  const ending = Math.floor(value / 10) === 1 ? "th" : (["th", "st", "nd", "rd"][value % 10] ?? "th");
  return `${value}${ending}`;
}

/** `1 minute`, `5 minutes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** `02:30`, from the minutes since midnight. */
export function clock(minutes: number): string {
  const twoDigits = (value: number) => String(value).padStart(2, "0");
  return `${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`;
}

/** Sorted numbers, with three or more in a row as one part: `1 to 5`, `9`. */
export function runs(values: readonly number[], name: (value: number) => string = String): string[] {
  const parts: string[] = [];
  for (let first = 0, last = 0; first < values.length; first = last + 1) {
    last = first;
    while (values[last + 1] === (values[last] as number) + 1) last += 1;
    const run = values.slice(first, last + 1).map(name);
    if (run.length > 2) parts.push(`${run[0]} to ${run.at(-1)}`);
    else parts.push(...run);
  }
  return parts;
}

/** The distance between neighbours, if it is always the same and there are at least `least` numbers; otherwise null. */
export function commonStep(values: readonly number[], least: number): number | null {
  const step = (values[1] ?? 0) - (values[0] ?? 0);
  const isCommon = values.every((value, index) => index === 0 || value - (values[index - 1] as number) === step);
  return values.length >= least && values.length > 1 && isCommon ? step : null;
}
