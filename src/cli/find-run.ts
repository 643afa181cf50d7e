/**
 * Which run is meant: a full id, or the beginning of one. An id begins with the time at which it was made, so the
 * beginning says where to look; besides, the newest runs are looked at, for children, whose ids have their parent's time.
 */
import type { RunHandle } from "../client/handle.js";
import type { Pawl } from "../connect.js";
import { isUuid } from "../core/ids.js";
import { CliError } from "./cli-error.js";
import type { Call } from "./command.js";
import { withPawl } from "./database.js";

const shortest = 6;
const pageSize = 1_000;
/** Clocks of different machines differ a little. */
const marginMs = 60_000;
/** The first twelve digits of an id are milliseconds. */
const timeDigits = 12;

/** Opens the database and calls `work` with the run that the first argument names. */
export function withRun<T>(call: Call, work: (run: RunHandle, pawl: Pawl) => Promise<T>): Promise<T> {
  return withPawl(call, async (pawl) => work(pawl.run(await findRun(pawl, call.args[0] as string)), pawl));
}

export async function findRun(pawl: Pawl, text: string): Promise<string> {
  const beginning = text.toLowerCase();
  if (isUuid(beginning)) return beginning;
  if (!/^[0-9a-f-]+$/.test(beginning))
    throw new CliError(`"${text}" is not the id of a run; \`pawl runs\` shows them.`);
  if (beginning.length < shortest)
    throw new CliError(`"${text}" is too short for a run; give at least ${shortest} characters of its id.`);
  const found = await idsThatBegin(pawl, beginning);
  const [only, another] = found;
  if (only === undefined) throw new CliError(`No run begins with "${text}"; give its full id, \`pawl runs\` shows it.`);
  if (another !== undefined) throw new CliError(`Several runs begin with "${text}"; give more of the id.`);
  return only;
}

async function idsThatBegin(pawl: Pawl, beginning: string): Promise<readonly string[]> {
  const digits = beginning.replaceAll("-", "").slice(0, timeDigits);
  const madeAfter = Number.parseInt(digits.padEnd(timeDigits, "0"), 16) - marginMs;
  const madeBefore = Number.parseInt(digits.padEnd(timeDigits, "f"), 16) + marginMs;
  const [then, newest] = await Promise.all([
    pawl.runs({ createdAfter: madeAfter, createdBefore: madeBefore, limit: pageSize }),
    pawl.runs({ limit: pageSize }),
  ]);
  const ids = new Set([...then.runs, ...newest.runs].map(({ id }) => id).filter((id) => id.startsWith(beginning)));
  // Not all of them were looked at: what looks unique may not be.
  if (then.next !== null && ids.size === 1 && digits.length < timeDigits)
    throw new CliError(`Too many runs began at the time of "${beginning}"; give the full id.`);
  return [...ids];
}
