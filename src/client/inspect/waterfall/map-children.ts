/** The children of a map, as far as the events of the map tell: when each was allowed to run, and when it had ended. */
import { childRunId } from "../../../core/naming/ids.js";
import { dataOf, type StoredEvent } from "../../../core/run/event.js";
import { expandRanges } from "../../../core/run/ranges.js";
import type { EventData } from "../../../core/run/stored-schema.js";
import { type GroupSummary, newSpan, type RowNode, type RowState } from "./rows.js";

type MapStarted = EventData["map.started"];

interface ChildEnd {
  readonly at: number;
  readonly state: "completed" | "failed";
}

export class MapChildren {
  readonly #data: MapStarted;
  readonly #idOf: (index: number) => string | null;
  /** From the index `first` on, children were allowed to run at the instant `at`. */
  readonly #releases: { readonly first: number; readonly at: number }[];
  readonly #ends = new Map<number, ChildEnd>();
  #released: number;
  #failed = 0;

  /** @param idOf the id of the child with this index, unless an earlier run has started it */
  constructor(data: MapStarted, idOf: (index: number) => string | null, at: number) {
    this.#data = data;
    const adopted = adoptedIds(data);
    this.#idOf = (index) => adopted.get(index) ?? idOf(index);
    this.#released = data.released;
    this.#releases = [{ first: 0, at }];
    const failed = new Set(expandRanges(data.failed ?? []));
    for (const index of adopted.keys()) this.#end(index, failed.has(index) ? "failed" : "completed", at);
  }

  addEvent(event: StoredEvent): void {
    if (event.type === "map.settled") {
      const { completed, failed } = dataOf(event, "map.settled");
      for (const index of expandRanges(completed)) this.#end(index, "completed", event.at);
      for (const index of expandRanges(failed)) this.#end(index, "failed", event.at);
    } else {
      const { released } = dataOf(event, "map.released");
      if (released > this.#released) this.#releases.push({ first: this.#released, at: event.at });
      this.#released = Math.max(released, this.#released);
    }
  }

  /** "failed" as soon as more children have failed than the map tolerates; the others are then canceled. */
  get state(): "waiting" | "completed" | "failed" {
    if (this.#failed > this.#data.tolerate) return "failed";
    return this.#ends.size >= this.#data.count ? "completed" : "waiting";
  }

  summary(group: string): GroupSummary {
    const { count } = this.#data;
    const pending = Math.max(0, count - Math.max(this.#released, this.#ends.size));
    return { id: group, count, ended: this.#ends.size, failed: this.#failed, pending };
  }

  /** @param endAt when the map or the run has ended; null if both are open */
  members(key: string, endAt: number | null): RowNode[] {
    let release = 0;
    return Array.from({ length: this.#data.count }, (_, index) => {
      while ((this.#releases[release + 1]?.first ?? Number.POSITIVE_INFINITY) <= index) release += 1;
      return this.#member(key, index, (this.#releases[release] as { readonly at: number }).at, endAt);
    });
  }

  #member(key: string, index: number, releasedAt: number, endAt: number | null): RowNode {
    const end = this.#ends.get(index);
    const isReleased = index < this.#released || end !== undefined;
    const openState: RowState = endAt !== null ? "canceled" : isReleased ? "waiting" : "pending";
    const state = end?.state ?? openState;
    const from = Math.min(releasedAt, end?.at ?? releasedAt);
    const span = newSpan({ kind: "wait", waitsFor: "child", state, from, to: end?.at ?? endAt });
    const row = {
      id: `${key}[${index}]`,
      node: null,
      name: `[${index}]`,
      kind: "child",
      depth: 0,
      state,
      attempts: 0,
      detail: null,
      child: { runId: this.#idOf(index), workflow: this.#data.workflow },
      group: null,
      spans: isReleased ? [span] : [],
    } as const;
    return { row, firstSeq: index, children: [] };
  }

  #end(index: number, state: ChildEnd["state"], at: number): void {
    if (this.#ends.has(index)) return;
    // After the map has failed, its other children are canceled; their end is no failure of their own.
    if (state === "failed" && this.state === "waiting") this.#failed += 1;
    this.#ends.set(index, { at, state });
  }
}

/** Children of earlier runs of the lineage have ids of their own. */
function adoptedIds({ from = [] }: MapStarted): ReadonlyMap<number, string> {
  const ids = new Map<number, string>();
  for (const { run, node, indexes } of from)
    for (const index of expandRanges(indexes)) ids.set(index, childRunId(run, node, index));
  return ids;
}
