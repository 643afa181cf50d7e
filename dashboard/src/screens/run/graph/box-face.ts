/** What a box says: its state, its two lines of text, and the sentence that a screen reader reads. */

import { escapeHidden, formatCount, plural } from "../../../ui/format.js";
import { toneOf } from "../../../ui/status.js";
import type { DrawnBox } from "./collapse.js";
import type { GraphNode } from "./structure.js";

export interface BoxFace {
  /** The state whose icon and colour the box has; null in definitions. */
  readonly state: string | null;
  readonly title: string;
  readonly detail: string;
  /** What a screen reader reads after both lines. */
  readonly more: string;
}

/** The state that a group shows: what needs a person comes first. */
const urgency = ["failed", "executing", "scheduled", "pending", "canceled", "removed", "skipped", "completed"];
const maxTitle = 31;

/** "990 completed, 10 failed", with the most frequent state first. */
function countsText(counts: ReadonlyMap<string, number>): string {
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([state, count]) => `${formatCount(count)} ${state}`)
    .join(", ");
}

export function countStates(nodes: Iterable<GraphNode>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { state } of nodes) if (state !== null) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}

export function faceOf(box: DrawnBox, nodes: readonly GraphNode[]): BoxFace {
  const title = shorten(escapeHidden(box.title));
  const members = box.members.map((index) => nodes[index]).filter((node) => node !== undefined);
  if (box.kind === "node") return nodeFace(title, members[0]);
  const counts = countStates(members);
  const state = urgency.find((one) => counts.has(one)) ?? null;
  const states = countsText(counts);
  const detail = groupDetail(members.length, counts);
  const more = states === "" || detail.includes(states) ? hints[box.kind] : `In all: ${states}. ${hints[box.kind]}`;
  return { state, title, detail, more };
}

/** Two states fit into a box: the most frequent one, and what failed. The others are told by an ellipsis. */
function groupDetail(size: number, counts: ReadonlyMap<string, number>): string {
  if (counts.size === 0) return plural(size, "step");
  const [first, ...rest] = [...counts].sort(([, a], [, b]) => b - a);
  const second = rest.find(([state]) => state === "failed") ?? rest[0];
  const shown = countsText(new Map([first, second].filter((one) => one !== undefined)));
  if (counts.size === 1) return shown;
  return `${formatCount(size)}: ${shown}${counts.size > 2 ? ", …" : ""}`;
}

const hints: Readonly<Record<Exclude<DrawnBox["kind"], "node">, string>> = {
  group: "Press Enter to show them.",
  rest: "Press Enter to show more of them.",
  earlier: "Press Enter to go there.",
  later: "Press Enter to go there.",
};

function nodeFace(title: string, node: GraphNode | undefined): BoxFace {
  if (node === undefined) return { state: null, title, detail: "", more: "" };
  const after = node.after.length === 0 ? "" : `After ${listText(node.after.map(escapeHidden))}.`;
  const more = title === node.name ? after : `${escapeHidden(node.name)}. ${after}`;
  if (node.state === null) {
    const failures = node.failures ?? 0;
    const detail = failures === 0 ? "" : `${formatCount(failures)} failed or paused`;
    return { state: failures === 0 ? null : "failed", title, detail, more };
  }
  const attempt = node.attempt > 1 ? `attempt ${node.attempt}` : "";
  return { state: node.state, title, detail: [node.state, attempt].filter((part) => part !== "").join(" · "), more };
}

/** "a, b and 3 more". */
export const listText = (names: readonly string[], max = 3): string =>
  names.length <= max
    ? names.join(", ")
    : `${names.slice(0, max - 1).join(", ")} and ${formatCount(names.length - max + 1)} more`;

/** Names often differ at their end, so the middle is left out. */
const shorten = (text: string): string =>
  text.length <= maxTitle ? text : `${text.slice(0, 18)}…${text.slice(-(maxTitle - 19))}`;

export const toneOfFace = ({ state }: BoxFace): string => (state === null ? "none" : toneOf(state));
