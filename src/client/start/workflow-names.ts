/** Refuses two different workflows with one name in this process, because each would execute runs of the other. */
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

  /**
   * @throws InvalidInputError if the name belongs to a built graph, or to a workflow of another style. A second workflow of
   *   the same style is accepted, because it may be new code of the same workflow.
   */
  reserveForWorkflow({ name, version, style }: WorkflowDefinition): void {
    if (this.#builtGraphs.has(name))
      throw new InvalidInputError(
        `The name "${name}" belongs to graphs that are built at run time, build("${name}", …); rename the workflow.`,
      );
    const key = `${name}\u0000${version}`;
    const existingStyle = this.#styles.get(key) ?? style;
    if (existingStyle !== style)
      throw new InvalidInputError(
        `Two workflows are called "${name}": ${styleNames[existingStyle]}, and ${styleNames[style]}; rename one of them, or give it a version.`,
      );
    this.#styles.set(key, style);
    this.#workflows.add(name);
  }

  /**
   * @param isRegistered reads whether the database has a workflow of this name; not called again once the name is reserved
   * @throws InvalidInputError if the name belongs to a workflow
   */
  async reserveForBuiltGraph(name: string, isRegistered: () => Promise<boolean>): Promise<void> {
    if (this.#builtGraphs.has(name)) return;
    if (this.#workflows.has(name) || (await isRegistered()))
      throw new InvalidInputError(`build("${name}", …) has the name of a registered workflow; rename the graph.`);
    this.#builtGraphs.add(name);
  }
}
