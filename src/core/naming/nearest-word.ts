/** Finds the known word that is closest to a mistyped word, for suggestions in error messages. */

/** The candidate that is closest to the word; null when no candidate is close. */
export function nearestWord(word: string, candidates: readonly string[]): string | null {
  const maxDistance = Math.max(2, Math.floor(word.length / 3));
  let best: { readonly word: string; readonly distance: number } | null = null;
  for (const candidate of candidates) {
    const distance = candidate.startsWith(word) && word.length > 1 ? 1 : editDistance(word, candidate);
    if (distance <= maxDistance && distance < candidate.length && (best === null || distance < best.distance))
      best = { word: candidate, distance };
  }
  return best?.word ?? null;
}

/** `; did you mean "status"?`, or an empty text when no candidate is close. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const suggestion = nearestWord(word, candidates);
  return suggestion === null ? "" : `; did you mean "${suggestion}"?`;
}

/** The number of letters to insert, delete, replace or swap with their neighbour (optimal string alignment distance). */
function editDistance(a: string, b: string): number {
  let rowBeforeLast: number[] = [];
  let lastRow = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const currentRow = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const isSameLetter = a[row - 1] === b[column - 1];
      let cost = Math.min(
        (lastRow[column] as number) + 1,
        (currentRow[column - 1] as number) + 1,
        (lastRow[column - 1] as number) + (isSameLetter ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1])
        cost = Math.min(cost, (rowBeforeLast[column - 2] as number) + 1);
      currentRow.push(cost);
    }
    rowBeforeLast = lastRow;
    lastRow = currentRow;
  }
  return lastRow[b.length] as number;
}
