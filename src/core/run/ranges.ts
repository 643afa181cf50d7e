/** A range of numbers that includes both ends. With ranges, a log need not list each of 10,000 ended children. */
export type Range = [first: number, last: number];

/** Combines numbers to ranges: `[3, 1, 2, 7]` becomes `[[1, 3], [7, 7]]`. */
export function rangesOf(numbers: readonly number[]): Range[] {
  const ranges: Range[] = [];
  for (const number of numbers.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && number === last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges;
}

export function* expandRanges(ranges: readonly (readonly [number, number])[]): Generator<number> {
  for (const [first, last] of ranges) for (let index = first; index <= last; index += 1) yield index;
}
