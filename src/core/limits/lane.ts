/**
 * A lane is the part of a limit that belongs to one key: the limit "per_tenant" with a concurrency of 2 lets two runs of each
 * tenant be executed, and each tenant is a lane. A limit without a key has one lane, whose key is empty.
 *
 * A class is a set of waiting runs that need the same: the same route and version, the same lanes, the same share. Admission
 * looks at classes and never at single runs, so its cost does not depend on how many runs wait.
 */
import { childRunId } from "../naming/ids.js";
import { classRouteOf } from "../naming/route.js";

/** The shortest key column of all stores has 255 bytes. */
const maxLaneBytes = 255;
/** No name contains a tab, so the first one ends the name of the limit. */
const separator = "\t";

export function laneIdOf(limit: string, key: string): string {
  const id = `${limit}${separator}${key}`;
  const isStorable = !controlCharacter.test(key) && Buffer.byteLength(id) <= maxLaneBytes;
  return isStorable ? id : `${limit}${separator}#${childRunId("lane", key, 0)}`;
}

/** PostgreSQL cannot store \u0000, and lone surrogates would become the same character. */
const controlCharacter = /[\p{Cc}\p{Cs}]/u;

export interface Lane {
  /** The name of the limit. */
  readonly limit: string;
  /** The key; "" for a limit without one. A key that is too long for a column is a hash. */
  readonly key: string;
}

export function laneOf(id: string): Lane {
  const end = id.indexOf(separator);
  return { limit: id.slice(0, end), key: id.slice(end + 1) };
}

/** All lanes of a limit have an id in this range: from the first text, and less than the second. */
export const laneRangeOf = (limit: string): readonly [from: string, to: string] => [`${limit}\t`, `${limit}\n`];

/** A part of the key of a step is enough for people who look at its slot, and its name must fit into a column. */
const maxStepLength = 50;
const workerIdLength = 12;

/**
 * The name of the slot of a step. No other attempt in any process has the same: a worker may give a slot back after another
 * one has begun the run's next attempt at the step.
 *
 * @param number differs for all attempts of the worker in this epoch
 */
export const slotNodeOf = (workerId: string, epoch: number, number: number, step: string): string =>
  `${workerId.slice(-workerIdLength).replaceAll(" ", "_")}.${epoch}.${number} ${[...step].slice(0, maxStepLength).join("")}`;

export const stepOfSlot = (node: string): string => node.slice(node.indexOf(" ") + 1);

export interface RunClass {
  /** The route of the tasks of its runs; no two classes have the same. */
  readonly id: string;
  /** The route that its tasks had before, and get back when they are admitted. */
  readonly route: string;
  readonly version: string;
  /** The ids of the lanes in which each of its runs needs a slot, sorted. */
  readonly lanes: readonly string[];
}

/** @param share runs with different texts get their turns independently of each other; see `fairBy` */
export function runClassOf(route: string, version: string, lanes: readonly string[], share: string): RunClass {
  const sortedLanes = [...new Set(lanes)].sort();
  const hash = childRunId("class", JSON.stringify([route, version, sortedLanes, share]), 0);
  return { id: classRouteOf(route, hash), route, version, lanes: sortedLanes };
}
