/**
 * I7: which worker owned which run, recomputed from what the database has accepted. Fences only grow, a run has one owner, and nothing is
 * accepted from any other.
 */
import type { Fence } from "../../../src/store/contract/store.js";
import { type Evidence, isSameFence, type Report } from "../evidence.js";

/** By run: who owned it from which entry of the journal on. */
export type Ownership = ReadonlyMap<string, readonly { readonly from: number; readonly owner: Fence | null }[]>;

export function ownerAt(ownership: Ownership, run: string, seq: number): Fence | null {
  return ownership.get(run)?.findLast(({ from }) => from <= seq)?.owner ?? null;
}

export function checkOwnership(evidence: Evidence, report: Report): Ownership {
  const owners = new Map<string, Fence>();
  const history = new Map<string, { from: number; owner: Fence | null }[]>();
  const epochs = new Map<string, number>();
  /** By id: the epoch of each worker that has neither stopped nor been given up. */
  const live = new Map<string, number>();
  const ended = new Set<string>();
  const started = new Set<string>();

  const setOwner = (run: string, owner: Fence | null, from: number) => {
    if (owner === null) owners.delete(run);
    else owners.set(run, owner);
    const changes = history.get(run);
    if (changes === undefined) history.set(run, [{ from, owner }]);
    else changes.push({ from, owner });
  };
  const free = (workerId: string, from: number) => {
    live.delete(workerId);
    for (const [run, owner] of [...owners]) if (owner.workerId === workerId) setOwner(run, null, from);
  };

  for (const entry of evidence.journal) {
    const { seq } = entry;
    if (entry.kind === "registered") {
      const { workerId, epoch } = entry.fence;
      if (epoch <= (epochs.get(workerId) ?? 0))
        report("I7", null, `Worker ${workerId} was registered with epoch ${epoch} again.`);
      epochs.set(workerId, epoch);
      free(workerId, seq);
      live.set(workerId, epoch);
    } else if (entry.kind === "freed") for (const id of entry.workerIds) free(id, seq);
    else if (entry.kind === "claimed") {
      if (live.get(entry.fence.workerId) !== entry.fence.epoch)
        report("I7", entry.runIds[0] ?? null, `A claim of ${fenceText(entry.fence)} was accepted, which is not live.`);
      for (const run of entry.runIds) {
        if (owners.has(run))
          report(
            "I7",
            run,
            `It was claimed by ${fenceText(entry.fence)} while ${fenceText(owners.get(run) as Fence)} owned it.`,
          );
        if (ended.has(run)) report("I9", run, "It was claimed after it had ended.");
        setOwner(run, entry.fence, seq);
      }
    } else if (entry.kind === "commit" && entry.result.kind === "committed") {
      const { batch, result } = entry;
      for (const { runId, next } of batch.transitions) {
        if (ended.has(runId)) report("I9", runId, "It was written to after it had ended.");
        if (!isSameFence(owners.get(runId) ?? null, batch.fence))
          report(
            "I7",
            runId,
            `A write of ${fenceText(batch.fence)} was accepted; its owner was ${fenceText(owners.get(runId) ?? null)}.`,
          );
        if (next.kind === "finish") ended.add(runId);
        const isReleased =
          next.kind === "finish" ||
          (next.kind === "park" && !result.notParked.includes(runId) && next.keepsDueTime !== true);
        if (isReleased && owners.has(runId)) setOwner(runId, null, seq);
      }
      const refused = new Set(result.refused.map(({ runId }) => runId));
      for (const { id, due } of batch.starts) {
        if (refused.has(id)) continue;
        // A start that is repeated changes nothing, also if the run has another owner since, or none.
        if (due.kind === "owned" && !started.has(id)) setOwner(id, batch.fence, seq);
        started.add(id);
      }
    }
  }
  return history;
}

const fenceText = (fence: Fence | null) =>
  fence === null ? "a client" : `worker ${fence.workerId.slice(-6)}/${fence.epoch}`;
