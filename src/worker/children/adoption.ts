/**
 * Children of a run that goes on for another one. Those that the other run had and that completed are taken over as they
 * are; a child that did not goes on where it ended. Both only with the same input: with another, it is another child.
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

/** Rows are read with their outputs, so not too many at a time. */
const readsPerPage = 500;

/** The child that an earlier run had for this call; null: none, or one with another input. */
export async function findChildPredecessor(turn: ParentTurn, key: string, spec: ChildRunSpec): Promise<RunRecord | null> {
  const origins = turn.state.lineage?.childrenOrigins.get(key);
  if (origins === undefined) return null;
  const rows = await readRows(turn, idsOf(origins, 0));
  return findSameChild(spec, origins, 0, rows);
}

export const asSuccessor = (spec: ChildRunSpec, predecessor: RunRecord): ChildRunSpec => ({
  ...spec,
  parentNode: retryParentNode(spec.parentNode, predecessor.id),
});

/** The births of a map's children from this index on; the map itself, if the log has it already. */
export interface MapChildren {
  readonly key: string;
  readonly first: number;
  readonly specs: ChildRunSpec[];
  readonly map: MapOp | undefined;
}

export interface Adoption {
  /** Whose children they are that need not run. Once the map is in the log, that is settled. */
  readonly adopted: readonly AdoptedChildren[];
  readonly isAdopted: (index: number) => boolean;
}

/** Finds out which children of a map are there already. Of the others, `births` says from here on whom they go on for. */
export async function adoptChildren(turn: ParentTurn, { key, first, specs, map }: MapChildren): Promise<Adoption> {
  const origins = turn.state.lineage?.childrenOrigins.get(key) ?? [];
  const adopted = new Set((map?.adopted ?? []).flatMap((adoptedChildren) => [...expandRanges(adoptedChildren.indexes)]));
  const foundByOrigin = origins.map((origin) => ({ place: origin, indexes: [] as number[] }));
  const perPage = Math.max(1, Math.floor(readsPerPage / Math.max(1, origins.length)));
  for (let from = 0; origins.length > 0 && from < specs.length; from += perPage) {
    const page = specs
      .slice(from, from + perPage)
      .map((spec, offset) => ({ spec: spec, index: first + from + offset }));
    const rows = await readRows(
      turn,
      page.flatMap(({ index }) => idsOf(origins, index)),
    );
    for (const { spec: spec, index } of page) {
      const earlier = findSameChild(spec, origins, index, rows);
      if (earlier === null || adopted.has(index)) continue;
      const canAdopt = earlier.status === "completed" && map === undefined;
      if (!canAdopt) specs[index - first] = asSuccessor(spec, earlier);
      else {
        adopted.add(index);
        foundByOrigin[idsOf(origins, index).indexOf(earlier.id)]?.indexes.push(index);
      }
    }
  }
  const taken = foundByOrigin.filter((adoptedChildren) => adoptedChildren.indexes.length > 0);
  return {
    adopted: taken.map(({ place: origin, indexes: indexes }) => ({ ...origin, indexes: rangesOf(indexes) })),
    isAdopted: (index) => adopted.has(index),
  };
}

const idsOf = (origins: readonly ChildrenOrigin[], index: number): string[] =>
  origins.map(({ run, node }) => childRunId(run, node, index));

async function readRows(turn: ParentTurn, ids: readonly string[]): Promise<ReadonlyMap<string, RunRecord>> {
  const rows = await readForTurn(turn, () => turn.host.store.runsById(ids));
  return new Map(rows.map((row) => [row.id, row]));
}

/** The newest that there is. */
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
