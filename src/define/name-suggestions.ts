/** Makes the end of an error about an unknown name: the nearest name, and the names that exist. */
import { didYouMean } from "../core/naming/nearest-word.js";

const maxNamesShown = 20;

/** Returns the end of a sentence, from its semicolon on: `; did you mean "charge"? Its steps are "charge", "ship".` */
export function suggestNames(unknownName: string, nouns: string, names: readonly string[]): string {
  if (names.length === 0) return `; it has no ${nouns}.`;
  const suggestion = didYouMean(unknownName, names);
  const shownNames = names.slice(0, maxNamesShown).map((name) => `"${name}"`);
  const moreText = names.length > maxNamesShown ? ` and ${names.length - maxNamesShown} more` : "";
  return `${suggestion === "" ? "; its" : `${suggestion} Its`} ${nouns} are ${shownNames.join(", ")}${moreText}.`;
}
