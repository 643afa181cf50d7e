/**
 * A run gathers starts while it has not begun: a debounced run is started later with each further call, and the run of a
 * workflow with `batch` gets a list of inputs. What it has gathered is kept in the column `schedule` of its row, which other
 * runs have for the occurrence of their schedule. So runs that gather nothing need no further column.
 */
import { childRunId } from "../naming/ids.js";
import type { NewRun } from "../run/transition.js";

/** Which input a debounced run gets: that of the last call, of the first one, or a list of all. */
export type DebounceKeep = "last" | "first" | "all";

export type GatherRule =
  | { readonly kind: "debounce"; readonly quietMs: number; readonly maxMs: number; readonly keep: DebounceKeep }
  | { readonly kind: "batch"; readonly size: number; readonly withinMs: number };

/** What a run has gathered, as its row has it. */
export interface RunGathering {
  readonly gathering: GatherRule["kind"];
  /** The row that leads further starts to the run. */
  readonly id: string;
  /** The key of the starts that the run gathers, for people. */
  readonly key: string;
  /** How many starts it has gathered. */
  readonly calls: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** Present if its input is the list of the gathered inputs: how many it takes, and how many bytes of text it has. */
  readonly list?: { readonly size: number; readonly bytes: number };
  /** Set when a worker begins the run: from then on it gathers nothing, and its row has the whole input. */
  readonly begun?: true;
}

/** A list is full when its inputs have so many bytes, because it is read and written as one value. */
const maxListBytes = 4 * 1024 * 1024;
/** The size of a list that is limited by nothing else. */
const maxListSize = 10_000;

/** @returns null if the text is of a run that belongs to a schedule, or to nothing */
export function readGathering(text: string | undefined): RunGathering | null {
  if (text === undefined || !text.startsWith(prefix)) return null;
  return JSON.parse(text) as RunGathering;
}

const prefix = '{"gathering":';

export const writeGathering = ({ gathering, ...others }: RunGathering): string =>
  JSON.stringify({ gathering, ...others });

/** Whether the run takes no more starts, although no worker has begun it. */
export const isFull = ({ list, calls }: RunGathering): boolean =>
  list !== undefined && (calls >= list.size || list.bytes >= maxListBytes);

export const listSizeOf = (rule: GatherRule): number | null =>
  rule.kind === "batch" ? rule.size : rule.keep === "all" ? maxListSize : null;

/**
 * Starts with the same id are gathered by one run. Whatever must be the same for all of them is part of it: a list is no
 * input for code that expects one value, and runs of another hero, version or priority are other runs.
 */
export function gatheringIdOf(rule: GatherRule, key: string, run: NewRun): string {
  const { workflow, version, priority, heroType, heroId } = run;
  const isList = listSizeOf(rule) !== null;
  return childRunId(
    "gathering",
    JSON.stringify([rule.kind, isList, workflow, version, priority, heroType, heroId, key]),
    0,
  );
}
