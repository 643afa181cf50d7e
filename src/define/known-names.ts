/** What is said about a name that a class or a graph does not know: which one may have been meant, and which there are. */
import { didYouMean } from "../core/naming/nearest.js";

const namesShown = 20;

/** The rest of a sentence, from the semicolon on: `; did you mean "charge"? Its steps are "charge", "ship".` */
export function knownNames(wrong: string, nouns: string, known: readonly string[]): string {
  if (known.length === 0) return `; it has no ${nouns}.`;
  const meant = didYouMean(wrong, known);
  const shown = known.slice(0, namesShown).map((name) => `"${name}"`);
  const more = known.length > namesShown ? ` and ${known.length - namesShown} more` : "";
  return `${meant === "" ? "; its" : `${meant} Its`} ${nouns} are ${shown.join(", ")}${more}.`;
}
