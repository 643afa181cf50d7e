/** Builds a graph at run time. The user's function is called once, and the nodes that it added are stored as data. */

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

/** A node of a graph that is being built, as `g.node` and `g.fanOut` return it. */
export interface NodeRef {
  /** The id of the node, unique within its graph. */
  readonly id: string;
  /** The name of the node. */
  readonly name: string;
}

/** The predecessors of a node: nodes or names of nodes. null: the node has no predecessors and starts at once. */
export type DependsOn = NodeRef | string | readonly (NodeRef | string)[] | null;

/** The type of a job's arguments; `unknown` if the job is given by its name. */
export type ArgsOf<Job> = Job extends JobDefinition<infer Args, any> ? Args : unknown;
type NodeArgsOption<Job> = [ArgsOf<Job>] extends [void]
  ? {
      /** The job takes no arguments. */
      readonly args?: undefined;
    }
  : unknown extends ArgsOf<Job>
    ? {
        /** The arguments of the job. */
        readonly args?: unknown;
      }
    : {
        /** The arguments of the job. */
        readonly args: ArgsOf<Job>;
      };

/** Options of `g.node`. `args` are the arguments of the job; they are required if the job takes arguments. */
export type NodeOptions<Job extends JobDefinition | string = JobDefinition | string> = {
  /** The job that the node runs: what `job(…)` returned, or its name. */
  readonly job: Job;
  /** The predecessors of the node. Default: the previous node, or all nodes of the previous `fanOut`. */
  readonly dependsOn?: DependsOn;
} & NodeArgsOption<Job>;

type ItemArgsOption<Item, Job> = [ArgsOf<Job>] extends [void]
  ? {
      /** The job takes no arguments. */
      readonly args?: undefined;
    }
  : unknown extends ArgsOf<Job>
    ? {
        /** Makes the arguments of the job for each item. */
        readonly args?: (item: Item, index: number) => unknown;
      }
    : {
        /** Makes the arguments of the job for each item. */
        readonly args: (item: Item, index: number) => ArgsOf<Job>;
      };

/** Options of `g.fanOut`. `args` makes the arguments of the job for an item; it is required if the job takes arguments. */
export type FanOutOptions<Item, Job extends JobDefinition | string> = {
  /** Makes the name of each node. Names must be unique within the graph. */
  readonly name: (item: Item, index: number) => string;
  /** The job that each node runs: what `job(…)` returned, or its name. */
  readonly job: Job;
  /** The predecessors of all these nodes. Default: the previous node, or all nodes of the previous `fanOut`. */
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

/** The argument `g` of the function given to `pawl.build`: adds nodes to a graph. */
export class GraphBuilder {
  readonly #workflow: string;
  readonly #runtime: Runtime;
  readonly #nodes = new Map<string, UnfrozenNode>();
  readonly #idsByName = new Map<string, string>();
  /** The default predecessors of the next node: the previous node, or the nodes of the previous `fanOut`. */
  #previousNodes: readonly NodeRef[] = [];

  /** @internal */
  constructor(workflow: string, runtime: Runtime) {
    this.#workflow = workflow;
    this.#runtime = runtime;
  }

  /**
   * Adds a node that runs a job after the previous node, or after the nodes in `dependsOn`. Throws a GraphError if another
   * node has the name.
   *
   * @example
   * ```ts
   * g.node("aggregate", { job: aggregate });
   * g.node("notify", { job: notify, args: { user: "ada" }, dependsOn: "aggregate" });
   * ```
   */
  node<const Job extends JobDefinition | string>(name: string, options: NodeOptions<Job>): NodeRef {
    checkOptions(`Node "${String(name)}"`, options ?? {}, nodeOptions);
    const { job, args, dependsOn } = (options ?? {}) as NodeOptions;
    const node = this.#add(name, job, args, this.#resolveDependsOn(name, dependsOn));
    this.#previousNodes = [node];
    return node;
  }

  /**
   * Adds one node per item; all of them may run at the same time. By default the next node depends on all of them.
   *
   * @example
   * ```ts
   * const parts = g.fanOut(ids, { name: (id) => `part_${id}`, job: importPart, args: (id) => ({ id }) });
   * g.node("aggregate", { job: aggregate, dependsOn: parts });
   * ```
   */
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
      throw new InvalidInputError(`\`args\` of fanOut in graph "${this.#workflow}" must be a function of the item.`);
    if (typeof (items as Partial<Iterable<Item>> | null)?.[Symbol.iterator] !== "function")
      throw new InvalidInputError(`fanOut in graph "${this.#workflow}" needs a list of items.`);
    const dependsOn = this.#resolveDependsOn("fanOut", options.dependsOn);
    const nodes = Array.from(items, (item, index) =>
      this.#add(options.name(item, index), options.job, options.args?.(item, index), dependsOn),
    );
    if (nodes.length > 0) this.#previousNodes = nodes;
    return nodes;
  }

  #resolveDependsOn(name: string, dependsOn: DependsOn | undefined): readonly (NodeRef | string)[] {
    if (dependsOn === undefined) return this.#previousNodes;
    if (dependsOn === null) return [];
    const list = Array.isArray(dependsOn) ? dependsOn : [dependsOn];
    for (const entry of list) {
      const isNodeRef = typeof entry === "object" && entry !== null && typeof entry.id === "string";
      if (typeof entry === "string" || isNodeRef) continue;
      throw new InvalidInputError(
        `dependsOn of node "${name}" must be a node, the name of a node, a list of these, or null.`,
      );
    }
    return list;
  }

  #add(name: string, job: JobDefinition | string, args: unknown, dependsOn: UnfrozenNode["dependsOn"]): NodeRef {
    const checkedName = checkName("node", name);
    if (checkedName.includes(scopeSeparator))
      throw new InvalidInputError(`The node name "${checkedName}" contains "${scopeSeparator}"; choose another.`);
    if (this.#idsByName.has(checkedName))
      throw new GraphError(`Graph "${this.#workflow}" has two nodes called "${checkedName}"; rename one of them.`, {
        workflow: this.#workflow,
        nodes: [checkedName],
      });
    const jobName = typeof job === "string" ? job : job?.job;
    if (jobName === undefined)
      throw new InvalidInputError(
        `Node "${checkedName}" of graph "${this.#workflow}" needs a \`job\`: one made by job(…), or the name of one.`,
      );
    const id = this.#newId();
    this.#idsByName.set(checkedName, id);
    this.#nodes.set(id, { name: checkedName, job: checkName("job", jobName, 190), args, dependsOn });
    return { id, name: checkedName };
  }

  #newId(): string {
    for (;;) {
      const id = `n_${randomHex(this.#runtime, 4)}`;
      if (!this.#nodes.has(id)) return id;
    }
  }

  /** @internal Returns the graph as data. */
  freezeDag(at: Date, options: DagOptions): FrozenDag {
    if (this.#nodes.size === 0)
      throw new GraphError(
        `Graph "${this.#workflow}" has no nodes; add them with g.node(name, { job }) or g.fanOut(items, …).`,
        { workflow: this.#workflow },
      );
    const nodes: Record<string, FrozenNode> = {};
    for (const [id, { name, job, args, dependsOn }] of this.#nodes) {
      const depends_on = [...new Set(dependsOn.map((dependency) => this.#idOf(name, dependency)))];
      nodes[id] = { name, job, ...(args === undefined ? {} : { args }), depends_on };
    }
    return freezeDag(this.#workflow, nodes, at, checkDagOptions(options));
  }

  #idOf(node: string, dependency: NodeRef | string): string {
    const id = typeof dependency === "string" ? this.#idsByName.get(dependency) : dependency.id;
    if (id !== undefined && this.#nodes.has(id)) return id;
    const name = typeof dependency === "string" ? dependency : dependency.name;
    const others = [...this.#idsByName.keys()].filter((nodeName) => nodeName !== node);
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
