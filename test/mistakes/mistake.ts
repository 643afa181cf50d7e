/** A deliberate mistake and the expected answer: an error of the compiler, or one sentence at run time. */
export type Mistake = {
  readonly what: string;
  /** The body of a function that gets `pawl` and the shop. The sentence is what it throws or returns. */
  readonly code: string;
} & (RefusedByCompiler | RefusedBySentence);

interface RefusedByCompiler {
  /** The line of the compiler's message that names the problem. */
  readonly compiler: string;
  readonly sentence?: undefined;
}

interface RefusedBySentence {
  /** With `<id>` for the id of a run and `<name>` for the name of a worker. */
  readonly sentence: string;
  readonly compiler?: undefined;
}

/** A deliberate mistake on the command line. */
export interface CommandMistake {
  readonly what: string;
  readonly args: readonly string[];
  /** The files in the folder where the command is run. */
  readonly files?: Readonly<Record<string, string>>;
  readonly sentence: string;
}
