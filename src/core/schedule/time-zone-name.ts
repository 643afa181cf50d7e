/** Checks the names of time zones. */
import { InvalidInputError } from "../errors/errors.js";
import { nearestWord } from "../naming/nearest-word.js";
import { shown } from "./words.js";

/** "+02:00", "UTC+2", "GMT-03:30". */
const OFFSET = /^(?:UTC|GMT)?[+-]\d/i;
/** Intl takes more of such names than IANA has, and not as their users mean them: to Intl, BST is Asia/Dhaka. */
const ABBREVIATION = /^[A-Z]{2,5}$/i;
const SHORT_IANA_NAMES = new Set(
  "UTC GMT UCT CET EET MET WET EST MST HST PRC ROC ROK GB NZ CUBA EGYPT EIRE IRAN JAPAN LIBYA ZULU".split(" "),
);

/**
 * Returns the name as it was written: runtimes differ in the names that they prefer (Europe/Kiev, Europe/Kyiv), and a schedule must
 * not look changed because another version of Node has read it.
 *
 * @param subject the beginning of the error's sentence, such as `Schedule "nightly_report"`
 */
export function checkTimeZone(subject: string, timeZone: unknown): string {
  const name = typeof timeZone === "string" ? timeZone : "";
  if (OFFSET.test(name) || /^Z$/i.test(name))
    throw new InvalidInputError(
      `${subject} has ${shown(name)} as its timeZone, but an offset does not know when the clocks change; write the name of a zone, such as "Europe/Berlin" or "UTC".`,
    );
  if (isKnown(name)) return name;
  const suggestion = suggestZone(name);
  throw new InvalidInputError(
    `${subject} has ${shown(timeZone)} as its timeZone, which is not the name of a zone; ${suggestion === null ? 'write one such as "Europe/Berlin" or "UTC".' : `did you mean "${suggestion}"?`}`,
  );
}

function isKnown(name: string): boolean {
  if (ABBREVIATION.test(name) && !SHORT_IANA_NAMES.has(name.toUpperCase())) return false;
  try {
    return name !== "" && new Intl.DateTimeFormat("en-US", { timeZone: name }) !== null;
  } catch {
    return false;
  }
}

/** The zone with the nearest name, or with this city. */
function suggestZone(name: string): string | null {
  const names = ["UTC", ...Intl.supportedValuesOf("timeZone")];
  const plain = (text: string) => text.toLowerCase().replaceAll(" ", "_");
  const city = plain(name);
  const byCity = names.find((known) => plain(known).endsWith(`/${city}`));
  if (city === "" || byCity !== undefined) return byCity ?? null;
  const nearest = nearestWord(city, names.map(plain));
  return names.find((known) => plain(known) === nearest) ?? null;
}
