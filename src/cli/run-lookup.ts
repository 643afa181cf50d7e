/**
 * Finds the run that the user names by its id, or by the end or the beginning of the id. Ids begin with the time of
 * their creation and end with random digits: all runs of about a minute share the first eight characters, the last
 * eight belong to one run.
 */
import type { RunHandle } from "../client/run-handle.js";
import type { Pawl } from "../connect.js";
import { parseRunId } from "../core/naming/element-id.js";
import { CliError } from "./cli-error.js";
import type { Call } from "./command.js";
import { withPawl } from "./database.js";

const minIdLength = 6;
const pageSize = 1_000;
/** How many pages of the newest runs are searched for an id with this end. */
const maxPages = 10;
const maxListedIds = 5;
/** A tolerance for the clocks of different machines. */
const marginMs = 60_000;
/** The first twelve hexadecimal digits of an id are its time in milliseconds. */
const timeDigits = 12;

/** Opens the database and calls `work` with the run that the first argument names. */
export function withRun<T>(call: Call, work: (run: RunHandle, pawl: Pawl) => Promise<T>): Promise<T> {
  return withPawl(call, async (pawl) => work(pawl.run(await findRunId(pawl, call.args[0] as string)), pawl));
}

export async function findRunId(pawl: Pawl, text: string): Promise<string> {
  const idPart = text.toLowerCase();
  if (parseRunId(idPart) !== null) return idPart;
  if (!/^[0-9a-f-]+$/.test(idPart))
    throw new CliError(
      `"${text}" is not the id of a run; \`pawl runs\` shows them, \`pawl runs --key ${text}\` those with this idempotency key.`,
    );
  if (idPart.length < minIdLength)
    throw new CliError(
      `"${text}" is too short for a run; give at least ${minIdLength} characters of its id. By its idempotency key: \`pawl runs --key ${text}\`.`,
    );
  const matchingIds = await findMatchingIds(pawl, idPart);
  const [firstId, secondId] = matchingIds;
  if (firstId === undefined)
    throw new CliError(`No run begins or ends with "${text}"; give its full id, \`pawl runs\` shows it.`);
  if (secondId === undefined) return firstId;
  const listedIds = matchingIds.slice(0, maxListedIds).join(", ");
  const more = matchingIds.length > maxListedIds ? ` and ${matchingIds.length - maxListedIds} more` : "";
  throw new CliError(
    `Several runs begin or end with "${text}": ${listedIds}${more}. The last 8 characters tell them apart.`,
  );
}

async function findMatchingIds(pawl: Pawl, idPart: string): Promise<readonly string[]> {
  const matches = (id: string) => id.startsWith(idPart) || id.endsWith(idPart);
  const { ids: idsOfThatTime, isCut } = await idsCreatedAt(pawl, idPart);
  const matchingIds = new Set(idsOfThatTime.filter((id) => id.startsWith(idPart)));
  // The newest runs include children, whose ids have their parent's time instead of their own.
  for await (const ids of newestIds(pawl)) {
    for (const id of ids) if (matches(id)) matchingIds.add(id);
    if (matchingIds.size > 0) break;
  }
  // Not all runs of that time were read, so the only match may not be unique.
  const [only] = matchingIds;
  if (isCut && matchingIds.size === 1 && only?.startsWith(idPart))
    throw new CliError(
      `Too many runs started at the time of "${idPart}"; give the last 8 characters of the id, or all of it.`,
    );
  return [...matchingIds];
}

/** Returns the ids of runs that were created within the time that this prefix stands for. */
async function idsCreatedAt(pawl: Pawl, idPrefix: string) {
  const digits = idPrefix.replaceAll("-", "").slice(0, timeDigits);
  const createdAfter = Number.parseInt(digits.padEnd(timeDigits, "0"), 16) - marginMs;
  const createdBefore = Number.parseInt(digits.padEnd(timeDigits, "f"), 16) + marginMs;
  const { runs, next } = await pawl.runs({ createdAfter, createdBefore, limit: pageSize });
  return { ids: runs.map(({ id }) => id), isCut: next !== null && digits.length < timeDigits };
}

async function* newestIds(pawl: Pawl): AsyncGenerator<readonly string[]> {
  let cursor: string | null = null;
  for (let pageNumber = 0; pageNumber < maxPages; pageNumber += 1) {
    const page: Awaited<ReturnType<Pawl["runs"]>> = await pawl.runs({
      limit: pageSize,
      ...(cursor === null ? {} : { cursor }),
    });
    yield page.runs.map(({ id }) => id);
    if (page.next === null) return;
    cursor = page.next;
  }
}
