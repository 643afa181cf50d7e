/**
 * Which run is meant: a full id, its end, or its beginning. Ids begin with the time at which they were made and end with
 * random digits: the first eight characters are the same for all runs of about a minute, the last eight are of one run.
 */
import type { RunHandle } from "../client/run-handle.js";
import type { Pawl } from "../connect.js";
import { isUuid } from "../core/naming/ids.js";
import { CliError } from "./cli-error.js";
import type { Call } from "./command.js";
import { withPawl } from "./database.js";

const shortest = 6;
const pageSize = 1_000;
/** How many of the newest runs are looked at for an id that ends so. */
const mostPages = 10;
const listed = 5;
/** Clocks of different machines differ a little. */
const marginMs = 60_000;
/** The first twelve digits of an id are milliseconds. */
const timeDigits = 12;

/** Opens the database and calls `work` with the run that the first argument names. */
export function withRun<T>(call: Call, work: (run: RunHandle, pawl: Pawl) => Promise<T>): Promise<T> {
  return withPawl(call, async (pawl) => work(pawl.run(await findRun(pawl, call.args[0] as string)), pawl));
}

export async function findRun(pawl: Pawl, text: string): Promise<string> {
  const part = text.toLowerCase();
  if (isUuid(part)) return part;
  if (!/^[0-9a-f-]+$/.test(part))
    throw new CliError(
      `"${text}" is not the id of a run; \`pawl runs\` shows them, \`pawl runs --key ${text}\` those with this idempotency key.`,
    );
  if (part.length < shortest)
    throw new CliError(
      `"${text}" is too short for a run; give at least ${shortest} characters of its id. By its idempotency key: \`pawl runs --key ${text}\`.`,
    );
  const found = await idsWith(pawl, part);
  const [only, another] = found;
  if (only === undefined)
    throw new CliError(`No run begins or ends with "${text}"; give its full id, \`pawl runs\` shows it.`);
  if (another === undefined) return only;
  const some = found.slice(0, listed).join(", ");
  const more = found.length > listed ? ` and ${found.length - listed} more` : "";
  throw new CliError(
    `Several runs begin or end with "${text}": ${some}${more}. The last 8 characters tell them apart.`,
  );
}

async function idsWith(pawl: Pawl, part: string): Promise<readonly string[]> {
  const matches = (id: string) => id.startsWith(part) || id.endsWith(part);
  const { ids: then, isCut } = await idsMadeAt(pawl, part);
  const found = new Set(then.filter((id) => id.startsWith(part)));
  // Children, too, whose ids have their parent's time.
  for await (const ids of newestIds(pawl)) {
    for (const id of ids) if (matches(id)) found.add(id);
    if (found.size > 0) break;
  }
  // Not all of them were looked at: what looks unique may not be.
  const [only] = found;
  if (isCut && found.size === 1 && only?.startsWith(part))
    throw new CliError(
      `Too many runs began at the time of "${part}"; give the last 8 characters of the id, or all of it.`,
    );
  return [...found];
}

/** The runs of the time that an id with this beginning would be of. */
async function idsMadeAt(pawl: Pawl, beginning: string) {
  const digits = beginning.replaceAll("-", "").slice(0, timeDigits);
  const createdAfter = Number.parseInt(digits.padEnd(timeDigits, "0"), 16) - marginMs;
  const createdBefore = Number.parseInt(digits.padEnd(timeDigits, "f"), 16) + marginMs;
  const { runs, next } = await pawl.runs({ createdAfter, createdBefore, limit: pageSize });
  return { ids: runs.map(({ id }) => id), isCut: next !== null && digits.length < timeDigits };
}

async function* newestIds(pawl: Pawl): AsyncGenerator<readonly string[]> {
  let cursor: string | null = null;
  for (let page = 0; page < mostPages; page += 1) {
    const found: Awaited<ReturnType<Pawl["runs"]>> = await pawl.runs({
      limit: pageSize,
      ...(cursor === null ? {} : { cursor }),
    });
    yield found.runs.map(({ id }) => id);
    if (found.next === null) return;
    cursor = found.next;
  }
}
