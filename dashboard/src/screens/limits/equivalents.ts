/** What the dashboard does with limits, as commands and as TypeScript. */

/** A word of a command line. Single quotes keep everything else from the shell. */
const word = (text: string): string =>
  /^[\w@%+=:,.][\w@%+=:,./-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

const quoted = (text: string): string => JSON.stringify(text);

export interface Equivalent {
  readonly cli: string;
  readonly typescript: string;
}

export const showEquivalent = (name: string): Equivalent => ({
  cli: `pawl limits show ${word(name)}`,
  typescript: `const limit = await pawl.limits.get(${quoted(name)});`,
});

export const clearEquivalent = (name: string): Equivalent => ({
  cli: `pawl limits clear ${word(name)}`,
  typescript: `await pawl.limits.clearOverride(${quoted(name)});`,
});

/** What a person has asked for; absent: as in the code, null: any number. */
export interface Override {
  readonly concurrency?: number | null;
  readonly rate?: { readonly limit: number; readonly per: string; readonly burst?: number } | null;
  /** An instant, or how long: "2 hours"; absent: until it is cleared. */
  readonly until?: string;
}

export function overrideEquivalent(name: string, { concurrency, rate, until }: Override): Equivalent {
  const rateWord = rate == null ? "any" : `${rate.limit}/${rate.per}`;
  const options = [
    ...(concurrency === undefined ? [] : [`--concurrency ${concurrency ?? "any"}`]),
    ...(rate === undefined ? [] : [`--rate ${word(rateWord)}`]),
    ...(rate?.burst === undefined ? [] : [`--burst ${rate.burst}`]),
    ...(until === undefined ? [] : [`--until ${word(until)}`]),
    '--reason "…"',
  ];
  const isInstant = until !== undefined && /^\d{4}-/.test(until);
  const burst = rate?.burst === undefined ? "" : `, burst: ${rate.burst}`;
  const rateValue = rate == null ? "null" : `{ limit: ${rate.limit}, per: ${quoted(rate.per)}${burst} }`;
  const fields = [
    ...(concurrency === undefined ? [] : [`concurrency: ${concurrency}`]),
    ...(rate === undefined ? [] : [`rate: ${rateValue}`]),
    ...(until === undefined ? [] : [`until: ${isInstant ? `new Date(${quoted(until)})` : quoted(until)}`]),
    'reason: "…"',
  ];
  return {
    cli: `pawl limits override ${word(name)} ${options.join(" ")}`,
    typescript: `await pawl.limits.override(${quoted(name)}, {\n  ${fields.join(",\n  ")},\n});`,
  };
}
