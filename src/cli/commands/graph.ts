import { didYouMean } from "../../core/naming/nearest-word.js";
import type { DeclaredNode } from "../../core/run/stored-schema.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import { mermaidText } from "../../define/graph/drawing.js";
import type { GraphDefinition } from "../../define/graph/graph.js";
import { CliError } from "../cli-error.js";
import { command } from "../command.js";
import { loadDefinitions } from "../module-loader.js";

export const graph = command({
  name: "graph",
  about: "Draw the steps of the workflows in a file, for Mermaid",
  args: ["<file>"],
  options: { workflow: { type: "string", value: "<name>", about: "Only this one of the file" } },
  example: "pawl graph workflows.ts --workflow order > order.mmd",
  takesFiles: true,

  run: async ({ args, options, out }) => {
    const [file] = args as [string];
    const definitions = await loadDefinitions([file]);
    const workflows = selectWorkflows(definitions.workflows, options.workflow, file);
    const drawable = workflows.filter(({ declared }) => declared !== null);
    if (workflows.length + definitions.jobs.length === 0)
      throw new CliError(`${file} exports schedules only; name the file that exports their workflows.`);
    if (workflows.length === 0)
      throw new CliError(`${file} exports jobs only; the graphs that use them are drawn by pawl dag export.`);
    if (drawable.length === 0) {
      const names = workflows.map(({ name }) => `"${name}"`).join(", ");
      throw new CliError(`${names} cannot be drawn: the steps of a function are known only as it runs.`);
    }
    out.print(drawable.map(graphJsonOf), () =>
      drawable.map((workflow) => {
        const title = drawable.length === 1 ? "" : `%% ${workflow.name}\n`;
        return `${title}${mermaidOf(workflow)}`.trimEnd();
      }),
    );
  },
});

function selectWorkflows(
  all: readonly WorkflowDefinition[],
  name: string | undefined,
  file: string,
): readonly WorkflowDefinition[] {
  if (name === undefined) return all;
  const selected = all.filter((workflow) => workflow.name === name);
  if (selected.length > 0) return selected;
  const names = all.map((workflow) => workflow.name);
  throw new CliError(`${file} has no workflow "${name}"${didYouMean(name, names) || `; it has ${names.join(", ")}.`}`);
}

const isGraph = (workflow: WorkflowDefinition): workflow is GraphDefinition => "toMermaid" in workflow;
const nodesOf = ({ declared }: WorkflowDefinition): readonly DeclaredNode[] => declared?.nodes ?? [];

const graphJsonOf = (workflow: WorkflowDefinition) =>
  isGraph(workflow) ? workflow.toJSON() : { name: workflow.name, nodes: nodesOf(workflow) };
const mermaidOf = (workflow: WorkflowDefinition) =>
  isGraph(workflow) ? workflow.toMermaid() : renderFlowchart(nodesOf(workflow));

function renderFlowchart(nodes: readonly DeclaredNode[]): string {
  const ids = new Map(nodes.map(({ name }, index) => [name, `n${index + 1}`]));
  const boxes = nodes.map(({ name }) => `  ${ids.get(name)}["${mermaidText(name)}"]`);
  const arrows = nodes.flatMap(({ name, after }) => after.map((before) => `  ${ids.get(before)} --> ${ids.get(name)}`));
  return ["flowchart TD", ...boxes, ...arrows].join("\n");
}
