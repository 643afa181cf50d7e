/** Colours for terminals; output elsewhere, or with NO_COLOR, is plain. */

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;

export type Colour = keyof typeof codes;
export type Paint = (colour: Colour, text: string) => string;

export const inColour: Paint = (colour, text) => (text === "" ? "" : `\u001b[${codes[colour]}m${text}\u001b[0m`);
export const plain: Paint = (_colour, text) => text;

/** The colour of a run's status, an execution's or a worker's state, or a check's verdict. */
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
  active: "green",
  retired: "yellow",
  ended: "dim",
  expired: "yellow",
  stopped: "dim",
  ok: "green",
  warning: "yellow",
  problem: "red",
};
