/** Store calls as short texts, for traces. */
import type { Batch, CommitResult } from "../../../src/store/contract/store.js";

const shortId = (id: string) => id.slice(-6);

export function describeBatch(name: string, { fence, transitions, starts }: Batch): string {
  const parts = transitions.map(({ runId, afterSeq, events, next, messages, drainedInboxIds, newChildren }) => {
    const types = events.map(({ type, node }) => (node === null ? type : `${type}(${node})`)).join(" ");
    const state = next.kind === "keep" ? "" : next.kind === "park" ? ` →${next.status}` : ` →${next.status}!`;
    const sent = messages.map(({ to, kind }) => ` ✉${kind}→${shortId(to)}`).join("");
    const drained = drainedInboxIds.length > 0 ? ` drains ${drainedInboxIds.join()}` : "";
    const born = newChildren.map(({ id }) => ` +${shortId(id)}`).join("");
    return `${shortId(runId)}@${afterSeq}[${types}]${state}${sent}${drained}${born}`;
  });
  const born = starts.map(({ id, workflow }) => `${shortId(id)}:${workflow}`);
  return `${name} ${fence === null ? "client" : `${shortId(fence.workerId)}/${fence.epoch}`} ${[...parts, ...born].join("; ")}`;
}

/** What is unusual about the result; null if nothing is. */
export function describeResult(result: CommitResult): string | null {
  if (result.kind === "conflict")
    return `conflict about ${shortId(result.runId)}${result.hasUnreadMessages === true ? ", which has messages" : ""}`;
  if (result.kind === "fenced") return "fenced";
  const kept = result.notParked.map(shortId);
  const refused = result.refused.map(({ runId, existing }) => `${shortId(runId)} for ${shortId(existing.id)}`);
  if (kept.length + refused.length === 0) return null;
  return [
    kept.length > 0 ? `not parked: ${kept.join()}` : "",
    refused.length > 0 ? `refused: ${refused.join()}` : "",
  ].join(" ");
}
