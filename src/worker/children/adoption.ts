/**
 * The children of a run that retries an earlier run. If a child of the earlier run completed, the new run adopts it with
 * its result; if it did not, the new run retries it. If the child's workflow or input has changed, a new child is started.
 */

import { childRunId } from "../../core/naming/ids.js";
import { retryParentNode } from "../../core/run/lineage.js";
import { expandRanges, rangesOf } from "../../core/run/ranges.js";
import type { MapOp } from "../../core/run/state.js";
import type { AdoptedChildren, ChildrenOrigin } from "../../core/run/stored-schema.js";
import type { NewRun, RunRecord } from "../../store/contract/store.js";
import type { RunPort, WritePort } from "../turn/ports.js";
import { readForTurn } from "../turn/read.js";

type ParentTurn = RunPort & WritePort;

export type ChildRunSpec = Omit<NewRun, "id" | "due">;

/** The page size is limited, because each row is read with its output. */
const readsPerPage = 500;

/** Finds the child that an earlier run started for this call; null if none has the same workflow and input. */
export async function findChildPredecessor(
  turn: ParentTurn,
  key: string,
  spec: ChildRunSpec,
): Promise<RunRecord | null> {
  const origins = turn.state.lineage?.childrenOrigins.get(key);
  if (origins === undefined) return null;
  const rows = await readRows(turn, idsOf(origins, 0));
  return findSameChild(spec, origins, 0, rows);
}

export const asSuccessor = (spec: ChildRunSpec, predecessor: RunRecord): ChildRunSpec => ({
  ...spec,
  parentNode: retryParentNode(spec.parentNode, predecessor.id),
});

export interface MapChildren {
  readonly key: string;
  /** The index, within the map, of the first item of `specs`. */
  readonly first: number;
  /** `adoptChildren` replaces the specs of children that are retried. */
  readonly specs: ChildRunSpec[];
  /** The map as recorded in the log; undefined if it has not started. */
  readonly map: MapOp | undefined;
}

export interface Adoption {
  /**
   * The children to adopt, grouped by the run and node that started them. Empty if the map's start is already in the
   * log.
   */
  readonly adopted: readonly AdoptedChildren[];
  readonly isAdopted: (index: number) => boolean;
}

/** Finds the children of a map that can be adopted, and turns the specs of children that cannot into retries of them. */
export async function adoptChildren(turn: ParentTurn, { key, first, specs, map }: MapChildren): Promise<Adoption> {
  const origins = turn.state.lineage?.childrenOrigins.get(key) ?? [];
  const adoptedIndexes = new Set((map?.adopted ?? []).flatMap(({ indexes }) => [...expandRanges(indexes)]));
  const foundByOrigin = origins.map((origin) => ({ origin, indexes: [] as number[] }));
  const perPage = Math.max(1, Math.floor(readsPerPage / Math.max(1, origins.length)));
  for (let from = 0; origins.length > 0 && from < specs.length; from += perPage) {
    const page = specs.slice(from, from + perPage).map((spec, offset) => ({ spec, index: first + from + offset }));
    const rows = await readRows(
      turn,
      page.flatMap(({ index }) => idsOf(origins, index)),
    );
    for (const { spec, index } of page) {
      const earlierChild = findSameChild(spec, origins, index, rows);
      if (earlierChild === null || adoptedIndexes.has(index)) continue;
      const canAdopt = earlierChild.status === "completed" && map === undefined;
      if (!canAdopt) specs[index - first] = asSuccessor(spec, earlierChild);
      else {
        adoptedIndexes.add(index);
        foundByOrigin[idsOf(origins, index).indexOf(earlierChild.id)]?.indexes.push(index);
      }
    }
  }
  const adoptedByOrigin = foundByOrigin.filter(({ indexes }) => indexes.length > 0);
  return {
    adopted: adoptedByOrigin.map(({ origin, indexes }) => ({ ...origin, indexes: rangesOf(indexes) })),
    isAdopted: (index) => adoptedIndexes.has(index),
  };
}

const idsOf = (origins: readonly ChildrenOrigin[], index: number): string[] =>
  origins.map(({ run, node }) => childRunId(run, node, index));

async function readRows(turn: ParentTurn, ids: readonly string[]): Promise<ReadonlyMap<string, RunRecord>> {
  const rows = await readForTurn(turn, () => turn.host.store.runsById(ids));
  return new Map(rows.map((row) => [row.id, row]));
}

/** Returns the newest earlier child at this index if it has the same workflow and input, otherwise null. */
function findSameChild(
  spec: ChildRunSpec,
  origins: readonly ChildrenOrigin[],
  index: number,
  rows: ReadonlyMap<string, RunRecord>,
): RunRecord | null {
  for (const id of idsOf(origins, index)) {
    const row = rows.get(id);
    if (row !== undefined) return row.workflow === spec.workflow && row.input === spec.input ? row : null;
  }
  return null;
}
