/** Store calls as short texts, for traces. */
import type { Batch } from "../../../src/store/contract/store.js";

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
