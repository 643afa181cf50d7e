/** Converts the shape of a graph to a Mermaid flowchart, to JSON, and to a signature that changes with the shape. */
import { shapeSignature } from "../../core/graph/signature.js";
import type { Shape, ShapeNode } from "./shape.js";

/** The shape of a graph as data, as `order.toJSON()` returns it. */
export interface GraphJson {
  /** The name of the graph. */
  readonly name: string;
  /** A hash that changes when names, dependencies or cases change. */
  readonly signature: string;
  /** The steps and branches in topological order. */
  readonly nodes: readonly {
    /** The name of the step or branch. */
    readonly name: string;
    /** Whether it is a step or a branch. */
    readonly kind: "step" | "branch";
    /** The names of its predecessors. */
    readonly after: readonly string[];
    /** Set if the step has a compensation. */
    readonly compensated?: true;
    /** The branch and the case that the node belongs to; not set if it belongs to no case. */
    readonly case?: {
      /** The name of the branch. */
      readonly branch: string;
      /** The name of the case. */
      readonly label: string;
    };
  }[];
}

export function toJson(shape: Shape): GraphJson {
  return {
    name: shape.workflow,
    signature: signatureOf(shape),
    nodes: shape.nodes.map(({ name, handle, after, choice }) => ({
      name,
      kind: handle.kind,
      after,
      ...(choice === null ? {} : { case: choice }),
      ...(handle.kind === "step" && handle.options.compensate !== undefined ? { compensated: true as const } : {}),
    })),
  };
}

/**
 * Returns a hash of names, kinds, dependencies and cases, because changing them affects open runs. The order of the nodes in
 * the code does not change the hash.
 */
export function signatureOf(shape: Shape): string {
  return shapeSignature(shape.nodes, (name) => {
    const { handle, choice } = shape.byName.get(name) as ShapeNode;
    return [handle.kind, choice === null ? null : [choice.branch, choice.label]];
  });
}

/** Draws a Mermaid flowchart: steps are boxes, branches are diamonds, cases are labels on the arrows. */
export function toMermaid(shape: Shape): string {
  const ids = new Map(shape.nodes.map(({ name }, index) => [name, `n${index + 1}`]));
  const id = (name: string) => ids.get(name) as string;
  const lines = shape.nodes.map((node) => `  ${id(node.name)}${boxOf(node)}`);
  for (const { name, after, choice } of shape.nodes) {
    for (const before of after) {
      const label = choice?.branch === before ? `|${mermaidText(choice.label)}|` : "";
      lines.push(`  ${id(before)} -->${label} ${id(name)}`);
    }
  }
  return `flowchart TD\n${lines.join("\n")}\n`;
}

const boxOf = ({ name, handle }: ShapeNode) =>
  handle.kind === "branch" ? `{"${mermaidText(name)}"}` : `["${mermaidText(name)}"]`;

/** Escapes a text for a quoted label of Mermaid. */
export const mermaidText = (text: string): string =>
  text.replace(/[#"<>|&;]/g, (character) => `#${character.codePointAt(0)};`);
