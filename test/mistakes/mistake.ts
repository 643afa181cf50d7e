/** A mistake on purpose, and what it is answered with: by the compiler, or by one sentence when it is run. */
export type Mistake = {
  readonly what: string;
  /** The body of a function that gets `pawl` and has the shop at hand. What it throws or returns is the sentence. */
  readonly code: string;
} & (RefusedByCompiler | RefusedBySentence);

interface RefusedByCompiler {
  /** The line of its message that names the thing. */
  readonly compiler: string;
  readonly sentence?: undefined;
}

interface RefusedBySentence {
  /** With `<id>` for the id of a run, and `<name>` for a worker's. */
  readonly sentence: string;
  readonly compiler?: undefined;
}

/** The same on the command line. */
export interface CommandMistake {
  readonly what: string;
  readonly args: readonly string[];
  /** What is in the folder where it is called. */
  readonly files?: Readonly<Record<string, string>>;
  readonly sentence: string;
}
