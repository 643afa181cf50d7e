/** Finds the known word that a mistyped one is closest to. */

/** The known word that is nearest, if any is near. */
export function nearest(word: string, known: readonly string[]): string | null {
  const near = Math.max(2, Math.floor(word.length / 3));
  let best: { readonly word: string; readonly distance: number } | null = null;
  for (const one of known) {
    const distance = one.startsWith(word) && word.length > 1 ? 1 : distanceOf(word, one);
    if (distance <= near && distance < one.length && (best === null || distance < best.distance))
      best = { word: one, distance };
  }
  return best?.word ?? null;
}

/** "; did you mean "status"?", or nothing. */
export function didYouMean(word: string, known: readonly string[]): string {
  const meant = nearest(word, known);
  return meant === null ? "" : `; did you mean "${meant}"?`;
}

/** How many letters have to be put in, left out, replaced or swapped with their neighbour. */
function distanceOf(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        (last[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (last[column - 1] as number) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1])
        cost = Math.min(cost, (beforeLast[column - 2] as number) + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] as number;
}
