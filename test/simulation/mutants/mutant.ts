/**
 * A mutant is a version of the library with one bug: a list of texts that occur exactly once in their files, and what stands there
 * instead. It survives changes around these texts; `mutants.test.ts` fails when one of them is gone.
 */
export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutant {
  readonly name: string;
  /** What the bug breaks, as a sentence. */
  readonly breaks: string;
  readonly edits: readonly Edit[];
}

/** @param edits the file in `src`, the text, and its replacement */
export const mutant = (
  name: string,
  breaks: string,
  ...edits: readonly (readonly [file: string, find: string, replace: string])[]
): Mutant => ({
  name,
  breaks,
  edits: edits.map(([file, find, replace]) => ({ file: `src/${file}`, find, replace })),
});
