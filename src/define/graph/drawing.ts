/** A graph as a picture, as data, and as a signature that changes when its shape does. */
import { shapeSignature } from "../../core/graph/signature.js";
import type { Shape, ShapeNode } from "./shape.js";

export interface GraphJson {
  readonly name: string;
  readonly signature: string;
  readonly nodes: readonly {
    readonly name: string;
    readonly kind: "step" | "branch";
    readonly after: readonly string[];
    /** It can be undone. */
    readonly compensated?: true;
    readonly case?: { readonly branch: string; readonly label: string };
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

/** Over what matters to open runs: names, kinds, dependencies, cases. Not over the order in which they are written. */
export function signatureOf(shape: Shape): string {
  return shapeSignature(shape.nodes, (name) => {
    const { handle, choice } = shape.byName.get(name) as ShapeNode;
    return [handle.kind, choice === null ? null : [choice.branch, choice.label]];
  });
}

/** Mermaid's flowchart. Steps are boxes, branches are diamonds, cases are labels on the arrows. */
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

/** A text as it stands between the quotes of a label. */
export const mermaidText = (text: string): string =>
  text.replace(/[#"<>|&;]/g, (character) => `#${character.codePointAt(0)};`);
