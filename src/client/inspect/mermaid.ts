/** Draws the nodes of a run as a Mermaid flowchart, in the colours of their states. */
import { mermaidText } from "../../define/graph/drawing.js";
import type { NodeInfo } from "./nodes.js";

type DrawnNode = Pick<NodeInfo, "name" | "kind" | "state" | "after">;

/** Dashed nodes have not started. The colours are readable on light and on dark backgrounds. */
const stateStyles: Readonly<Record<NodeInfo["state"], string>> = {
  pending: "stroke-dasharray:4 4",
  scheduled: "stroke-dasharray:4 4,stroke:#2563eb",
  executing: "stroke:#2563eb,stroke-width:3px",
  completed: "stroke:#16a34a,stroke-width:2px",
  failed: "stroke:#dc2626,stroke-width:3px",
  canceled: "stroke:#d97706,stroke-width:2px",
  skipped: "stroke:#6b7280,color:#6b7280",
  removed: "stroke:#6b7280,stroke-dasharray:2 2,color:#6b7280",
};

/** Draws each node with its state as its Mermaid class, which sets its colour. */
export function nodesAsMermaid(nodes: readonly DrawnNode[]): string {
  const ids = new Map(nodes.map(({ name }, index) => [name, `n${index + 1}`]));
  const boxes = nodes.map((node) => `  ${ids.get(node.name)}${boxOf(node)}:::${node.state}`);
  const arrows = nodes.flatMap(({ name, after }) =>
    after.filter((before) => ids.has(before)).map((before) => `  ${ids.get(before)} --> ${ids.get(name)}`),
  );
  const states = [...new Set(nodes.map(({ state }) => state))].sort();
  const classes = states.map((state) => `  classDef ${state} ${stateStyles[state]}`);
  return `${["flowchart TD", ...boxes, ...arrows, ...classes].join("\n")}\n`;
}

const boxOf = ({ name, kind }: DrawnNode) =>
  kind === "branch" ? `{"${mermaidText(name)}"}` : `["${mermaidText(name)}"]`;
