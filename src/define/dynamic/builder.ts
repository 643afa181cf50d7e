/** Builds a graph at run time: plain code, run once, whose result is frozen. */

import { GraphError, InvalidInputError } from "../../core/errors/errors.js";
import {
  checkDagOptions,
  type DagOptions,
  type FrozenDag,
  type FrozenNode,
  freezeDag,
} from "../../core/graph/frozen-dag.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { checkName } from "../../core/naming/names.js";
import { scopeSeparator } from "../../core/run/step-key.js";
import { randomHex } from "../../runtime/random-hex.js";
import type { Runtime } from "../../runtime/runtime.js";
import { suggestNames } from "../name-suggestions.js";
import type { JobDefinition } from "./job.js";

/** A node of a graph that is being built. */
export interface NodeRef {
  readonly id: string;
  readonly name: string;
}

/** A node, or its name; several of them; null: it begins at once. */
export type DependsOn = NodeRef | string | readonly (NodeRef | string)[] | null;

/** What a job takes; of one that is known by its name only, anything. */
export type ArgsOf<Job> = Job extends JobDefinition<infer Args, any> ? Args : unknown;
type NodeArgsOption<Job> = [ArgsOf<Job>] extends [void]
  ? { readonly args?: undefined }
  : unknown extends ArgsOf<Job>
    ? { readonly args?: unknown }
    : { readonly args: ArgsOf<Job> };

export type NodeOptions<Job extends JobDefinition | string = JobDefinition | string> = {
  readonly job: Job;
  /** Default: the node before it, or all nodes of the fan-out before it. */
  readonly dependsOn?: DependsOn;
} & NodeArgsOption<Job>;

type ItemArgsOption<Item, Job> = [ArgsOf<Job>] extends [void]
  ? { readonly args?: undefined }
  : unknown extends ArgsOf<Job>
    ? { readonly args?: (item: Item, index: number) => unknown }
    : { readonly args: (item: Item, index: number) => ArgsOf<Job> };

export type FanOutOptions<Item, Job extends JobDefinition | string> = {
  readonly name: (item: Item, index: number) => string;
  readonly job: Job;
  readonly dependsOn?: DependsOn;
} & ItemArgsOption<Item, Job>;

const nodeOptions = new Set<string>(["job", "args", "dependsOn"] satisfies (keyof NodeOptions)[]);
const fanOutOptions = new Set<string>(["name", ...nodeOptions]);

interface UnfrozenNode {
  readonly name: string;
  readonly job: string;
  readonly args: unknown;
  readonly dependsOn: readonly (NodeRef | string)[];
}

export class GraphBuilder {
  readonly #workflow: string;
  readonly #runtime: Runtime;
  readonly #nodes = new Map<string, UnfrozenNode>();
  readonly #idsByName = new Map<string, string>();
  /** What the next node comes after when it does not say. Never frozen: by then there are ids. */
  #previous: readonly NodeRef[] = [];

  /** @internal */
  constructor(workflow: string, runtime: Runtime) {
    this.#workflow = workflow;
    this.#runtime = runtime;
  }

  /** One node. It comes after the one before it, unless `dependsOn` says otherwise. */
  node<const Job extends JobDefinition | string>(name: string, options: NodeOptions<Job>): NodeRef {
    checkOptions(`Node "${String(name)}"`, options ?? {}, nodeOptions);
    const { job, args, dependsOn } = (options ?? {}) as NodeOptions;
    const node = this.#add(name, job, args, this.#resolveDependsOn(name, dependsOn));
    this.#previous = [node];
    return node;
  }

  /** A node for each item, side by side. What comes next comes after all of them. */
  fanOut<Item, const Job extends JobDefinition | string>(
    items: Iterable<Item>,
    options: FanOutOptions<Item, Job>,
  ): NodeRef[] {
    checkOptions("fanOut()", options ?? {}, fanOutOptions);
    if (typeof options?.name !== "function")
      throw new InvalidInputError(
        `fanOut in graph "${this.#workflow}" needs a function \`name\` that names each node.`,
      );
    if (options.args !== undefined && typeof options.args !== "function")
      throw new InvalidInputError(`\`args\` of fanOut in graph "${this.#workflow}" is a function of the item.`);
    if (typeof (items as Partial<Iterable<Item>> | null)?.[Symbol.iterator] !== "function")
      throw new InvalidInputError(`fanOut in graph "${this.#workflow}" needs a list of items.`);
    const dependsOn = this.#resolveDependsOn("fanOut", options.dependsOn);
    const nodes = Array.from(items, (item, index) =>
      this.#add(options.name(item, index), options.job, options.args?.(item, index), dependsOn),
    );
    if (nodes.length > 0) this.#previous = nodes;
    return nodes;
  }

  #resolveDependsOn(name: string, dependsOn: DependsOn | undefined): readonly (NodeRef | string)[] {
    if (dependsOn === undefined) return this.#previous;
    if (dependsOn === null) return [];
    const list = Array.isArray(dependsOn) ? dependsOn : [dependsOn];
    for (const one of list) {
      if (typeof one === "string" || (typeof one === "object" && one !== null && typeof one.id === "string")) continue;
      throw new InvalidInputError(`dependsOn of node "${name}" takes nodes and names of nodes.`);
    }
    return list;
  }

  #add(name: string, job: JobDefinition | string, args: unknown, dependsOn: UnfrozenNode["dependsOn"]): NodeRef {
    const checked = checkName("node", name);
    if (checked.includes(scopeSeparator))
      throw new InvalidInputError(`The node name "${checked}" contains "${scopeSeparator}"; choose another.`);
    if (this.#idsByName.has(checked))
      throw new GraphError(`Graph "${this.#workflow}" has two nodes called "${checked}"; give one another name.`, {
        workflow: this.#workflow,
        nodes: [checked],
      });
    const jobName = typeof job === "string" ? job : job?.job;
    if (jobName === undefined)
      throw new InvalidInputError(
        `Node "${checked}" of graph "${this.#workflow}" needs a \`job\`: one made by job(…), or the name of one.`,
      );
    const id = this.#newId();
    this.#idsByName.set(checked, id);
    this.#nodes.set(id, { name: checked, job: checkName("job", jobName, 190), args, dependsOn });
    return { id, name: checked };
  }

  #newId(): string {
    for (;;) {
      const id = `n_${randomHex(this.#runtime, 4)}`;
      if (!this.#nodes.has(id)) return id;
    }
  }

  /** @internal What was built, as data. */
  freezeDag(at: Date, options: DagOptions): FrozenDag {
    if (this.#nodes.size === 0)
      throw new GraphError(
        `Graph "${this.#workflow}" has no nodes; add them with g.node(name, { job }) or g.fanOut(items, …).`,
        { workflow: this.#workflow },
      );
    const nodes: Record<string, FrozenNode> = {};
    for (const [id, { name, job, args, dependsOn }] of this.#nodes) {
      const depends_on = [...new Set(dependsOn.map((one) => this.#idOf(name, one)))];
      nodes[id] = { name, job, ...(args === undefined ? {} : { args }), depends_on };
    }
    return freezeDag(this.#workflow, nodes, at, checkDagOptions(options));
  }

  #idOf(node: string, dependency: NodeRef | string): string {
    const id = typeof dependency === "string" ? this.#idsByName.get(dependency) : dependency.id;
    if (id !== undefined && this.#nodes.has(id)) return id;
    const name = typeof dependency === "string" ? dependency : dependency.name;
    const others = [...this.#idsByName.keys()].filter((one) => one !== node);
    const suggestion = suggestNames(name, "other nodes", others);
    throw new GraphError(
      `Node "${node}" of graph "${this.#workflow}" depends on "${name}", which is not in the graph${suggestion}`,
      {
        workflow: this.#workflow,
        nodes: [node, name],
      },
    );
  }
}
