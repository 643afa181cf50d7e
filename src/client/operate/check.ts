/** The result of one check of a database. */
export interface Check {
  /** What was checked: "workers", "runs". */
  readonly name: string;
  /** A warning needs attention; because of a problem nothing works. */
  readonly verdict: "ok" | "warning" | "problem";
  /** The result, and what to do about it. */
  readonly text: string;
}

export const ok = (name: string, text: string): Check => ({ name, verdict: "ok", text });
export const problem = (name: string, text: string): Check => ({ name, verdict: "problem", text });
export const warning = (name: string, text: string): Check => ({ name, verdict: "warning", text });

export const maxListedNames = 5;

/** At most five names, separated by commas. */
export function namesText(names: readonly string[]): string {
  const shown = names.slice(0, maxListedNames).join(", ");
  return names.length <= maxListedNames ? shown : `${shown} and more`;
}
