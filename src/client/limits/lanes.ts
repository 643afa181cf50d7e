/** A page of the lanes of a limit, with what holds their slots and what waits for them. */
import { InvalidInputError } from "../../core/errors/errors.js";
import { laneIdOf, laneOf } from "../../core/limits/lane.js";
import { checkOptions } from "../../core/naming/check-options.js";
import type { LaneRecord } from "../../store/contract/limits.js";
import type { Store } from "../../store/contract/store.js";
import { type LaneInfo, type LimitPageOptions, toHolder } from "./limit-info.js";
import { countWaiting, maxWaiting, mayHaveMore, nothingWaits, readOpenClasses } from "./waiting.js";

const pageOptions = new Set(["key", "limit", "cursor"] satisfies (keyof LimitPageOptions)[]);
const maxPageSize = 1_000;
const maxHolders = 20;
/** How many classes are read that are blocked on the lanes of a page, but at least some of each lane. */
const maxClassesPerPage = 1_000;
const minClassesPerLane = 10;

interface LanePage {
  readonly lanes: readonly LaneInfo[];
  readonly next: string | null;
}

export interface LaneQuestion {
  /** The id of the only lane; null: all lanes. */
  readonly id: string | null;
  /** The lanes follow this one. */
  readonly after: string | null;
  readonly limit: number;
}

export function checkLaneQuestion(name: string, options: LimitPageOptions): LaneQuestion {
  checkOptions("limits.get()", options, pageOptions);
  const { key, limit = 100, cursor } = options;
  if (key !== undefined && typeof key !== "string")
    throw new InvalidInputError(`limits.get({ key }) must be a text, not ${String(key)}.`);
  if (!Number.isInteger(limit) || limit < 1 || limit > maxPageSize)
    throw new InvalidInputError(`limits.get({ limit }) must be between 1 and ${maxPageSize}, not ${String(limit)}.`);
  return {
    id: key === undefined ? null : laneIdOf(name, key),
    after: cursor === undefined ? null : laneIdOf(name, readCursor(cursor)),
    limit,
  };
}

/** The prefix keeps the cursor of the empty key from being empty. */
const writeCursor = (key: string): string => Buffer.from(`k${key}`).toString("base64url");

function readCursor(cursor: string): string {
  const text = typeof cursor === "string" ? Buffer.from(cursor, "base64url").toString() : "";
  if (text.startsWith("k") && writeCursor(text.slice(1)) === cursor) return text.slice(1);
  throw new InvalidInputError("limits.get({ cursor }) must be the `next` of another page.");
}

export async function readLanePage(store: Store, name: string, { id, after, limit }: LaneQuestion): Promise<LanePage> {
  const page = { after, limit: limit + 1, ...(id === null ? {} : { id }) };
  const [used, openClasses] = await Promise.all([store.limits.lanes(name, page), readOpenClasses(store)]);
  const isAsked = (lane: string) =>
    laneOf(lane).limit === name && (id === null || lane === id) && (after === null || lane > after);
  const records = new Map(used.map((lane) => [lane.id, lane]));
  // A lane of which nothing is used is waited for between the end of its last run and the next admission.
  for (const lane of openClasses.flatMap(({ lanes }) => lanes))
    if (isAsked(lane) && !records.has(lane)) records.set(lane, unusedLane(lane));
  const found = [...records.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  const shown = found.slice(0, limit);
  const ids = shown.map((lane) => lane.id);
  const classesPerLane = Math.max(minClassesPerLane, Math.floor(maxClassesPerPage / Math.max(1, ids.length)));
  const inUse = shown.filter((lane) => lane.inUse > 0);
  const [slots, blocked] = await Promise.all([
    store.limits.holders(
      inUse.map((lane) => lane.id),
      maxHolders,
    ),
    store.limits.blockedClasses({ lanes: ids }, classesPerLane),
  ]);
  const waiting = await countWaiting(store, [...blocked, ...openClasses], (lane) => (records.has(lane) ? lane : null));
  const lanes = shown.map((lane): LaneInfo => {
    const { count, isCapped } = waiting.get(lane.id) ?? nothingWaits;
    const all = count + lane.waitingSteps;
    const hasMoreClasses = blocked.filter(({ blockedOn }) => blockedOn === lane.id).length >= classesPerLane;
    return {
      key: laneOf(lane.id).key,
      inUse: lane.inUse,
      holders: slots.filter((slot) => slot.lane === lane.id).map(toHolder),
      waiting: Math.min(all, maxWaiting),
      waitingCapped: isCapped || all > maxWaiting || hasMoreClasses || mayHaveMore(openClasses),
      nextAt: lane.opensAt === null ? null : new Date(lane.opensAt),
    };
  });
  const last = lanes.at(-1);
  return { lanes, next: found.length > limit && last !== undefined ? writeCursor(last.key) : null };
}

const unusedLane = (id: string): LaneRecord => ({ id, inUse: 0, waitingSteps: 0, opensAt: null });
