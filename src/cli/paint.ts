/** Colours, or none: only terminals get them, and only if NO_COLOR does not forbid it. */

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;

export type Colour = keyof typeof codes;
export type Paint = (colour: Colour, text: string) => string;

export const inColour: Paint = (colour, text) => (text === "" ? "" : `\u001b[${codes[colour]}m${text}\u001b[0m`);
export const plain: Paint = (_colour, text) => text;

/** Of the status of a run, the state of an execution, or the verdict of a check. */
export function colourOf(state: string): Colour {
  return colours[state] ?? "cyan";
}

const colours: Readonly<Record<string, Colour>> = {
  completed: "green",
  failed: "red",
  canceled: "dim",
  skipped: "dim",
  paused: "yellow",
  pending: "dim",
  scheduled: "dim",
  running: "blue",
  executing: "blue",
  live: "green",
  silent: "yellow",
  gone: "dim",
  ok: "green",
  warning: "yellow",
  problem: "red",
};
