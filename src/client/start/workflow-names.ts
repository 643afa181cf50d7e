/** What the names of workflows stand for in this process: two things of one name would count as one everywhere. */
import { InvalidInputError } from "../../core/errors/errors.js";
import type { WorkflowDefinition, WorkflowStyle } from "../../define/definition.js";

const styleNames: Readonly<Record<WorkflowStyle, string>> = {
  function: "a function, workflow(…)",
  class: "a class",
  graph: "a graph, graph(…)",
};

export class WorkflowNames {
  readonly #styles = new Map<string, WorkflowStyle>();
  readonly #workflows = new Set<string>();
  readonly #builtGraphs = new Set<string>();

  /** @throws InvalidInputError when the name belongs to something else. New code of the same style is a deploy, and fine. */
  reserveForWorkflow({ name, version, style }: WorkflowDefinition): void {
    if (this.#builtGraphs.has(name))
      throw new InvalidInputError(
        `The name "${name}" belongs to graphs that are built at run time, build("${name}", …); give the workflow another name.`,
      );
    const key = `${name}\u0000${version}`;
    const existingStyle = this.#styles.get(key) ?? style;
    if (existingStyle !== style)
      throw new InvalidInputError(
        `Two workflows are called "${name}": ${styleNames[existingStyle]}, and ${styleNames[style]}; give one of them another name, or a version.`,
      );
    this.#styles.set(key, style);
    this.#workflows.add(name);
  }

  /**
   * @param isRegistered whether the database knows a workflow of this name: asked once per process and name
   * @throws InvalidInputError when the name belongs to a workflow
   */
  async reserveForBuiltGraph(name: string, isRegistered: () => Promise<boolean>): Promise<void> {
    if (this.#builtGraphs.has(name)) return;
    if (this.#workflows.has(name) || (await isRegistered()))
      throw new InvalidInputError(
        `build("${name}", …) takes the name of a workflow that is registered; give the graph another name.`,
      );
    this.#builtGraphs.add(name);
  }
}
