/**
 * A graph that was built at run time, frozen as data without any code. It is stored as the input of its run, or in the
 * event of the run's last `importDag()`, and it does not change when the code changes.
 */

import { decode } from "../encoding/decode.js";
import { encode } from "../encoding/encode.js";
import { GraphError, InvalidInputError } from "../errors/errors.js";
import { checkOptions, checkWholeNumber } from "../naming/check-options.js";
import { sha256Hex } from "../naming/ids.js";
import { checkName } from "../naming/names.js";
import { frozenDagVersion } from "../naming/route.js";
import { scopeSeparator } from "../run/step-key.js";
import type { PredecessorsOf } from "./predecessors.js";
import { topologicalSort } from "./topological-sort.js";

/** A node of a frozen graph. */
export interface FrozenNode {
  /** The name of the node, unique in its graph. */
  readonly name: string;
  /** The name of the job that the node runs; a node without a job is a step of the run's class. */
  readonly job?: string;
  /** The arguments of the job. */
  readonly args?: unknown;
  /** The ids of the nodes that this node depends on. */
  readonly depends_on: readonly string[];
}

/** A graph as data, as `exportDag()` returns it and `importDag()` takes it. */
export interface FrozenDag {
  /** The version of this format. */
  readonly version: 1;
  /** A hash of the names, jobs and dependencies. */
  readonly signature: string;
  /** When the graph was frozen, as an ISO 8601 timestamp. */
  readonly frozen_at: string;
  /** The options that differ from their defaults. */
  readonly options?: DagOptions;
  /** The nodes by their ids. */
  readonly nodes: Readonly<Record<string, FrozenNode>>;
}

/** How a run executes a graph. */
export interface DagOptions {
  /** How many nodes may be executed at the same time. By default there is no limit. */
  readonly concurrency?: number;
  /**
   * What the run does after a node has failed for good: it starts no further node ("stop", the default), or it still starts
   * all nodes that do not depend on the failed node ("continue").
   */
  readonly onNodeFailure?: "stop" | "continue";
}

/** Checks the nodes and freezes them as a graph. */
export function freezeDag(
  workflow: string,
  nodes: Readonly<Record<string, FrozenNode>>,
  frozenAt: Date,
  options: DagOptions = {},
): FrozenDag {
  checkDag(workflow, nodes);
  return signDag(nodes, frozenAt, options);
}

/** Makes a graph, with its signature, of nodes that are already checked. */
export function signDag(nodes: FrozenDag["nodes"], frozenAt: Date, options: DagOptions = {}): FrozenDag {
  const settings = Object.keys(options).length === 0 ? {} : { options };
  return { version: 1, signature: signatureOf(nodes), frozen_at: frozenAt.toISOString(), ...settings, nodes };
}

function signatureOf(nodes: FrozenDag["nodes"]): string {
  const nameOf = (id: string) => (nodes[id] as FrozenNode).name;
  const lines = Object.values(nodes).map(({ name, job, depends_on }) =>
    JSON.stringify([name, job ?? null, depends_on.map(nameOf).sort()]),
  );
  return sha256Hex(lines.sort().join("\n")).slice(0, 16);
}

/** The graph as indented JSON, for display and editing. Arguments that JSON cannot express are tagged, as in the store. */
export function dagAsJson(dag: FrozenDag): string {
  const text = encode(dag, { label: "graph", limitBytes: Number.POSITIVE_INFINITY });
  return `${JSON.stringify(JSON.parse(text), null, 2)}\n`;
}

/** Reads a graph that may have been edited by hand. An error names the node or field that is not valid. */
export function parseDag(workflow: string, json: unknown): FrozenDag {
  const { version, frozen_at, nodes, options = {} } = parseDagJson(json);
  if (version !== 1)
    throw new InvalidInputError(`importDag takes a graph of version 1, not ${JSON.stringify(version)}.`);
  if (typeof nodes !== "object" || nodes === null || Array.isArray(nodes) || Object.keys(nodes).length === 0)
    throw new InvalidInputError("importDag takes a graph with `nodes` by their ids.");
  for (const [id, node] of Object.entries(nodes)) checkNode(id, node);
  const frozenAt = new Date(frozen_at ?? "");
  if (Number.isNaN(frozenAt.getTime()))
    throw new InvalidInputError("importDag takes a graph that says when it was `frozen_at`.");
  return freezeDag(workflow, nodes, frozenAt, checkDagOptions(options));
}

function parseDagJson(json: unknown): Partial<FrozenDag> {
  const text = typeof json === "string" ? json : JSON.stringify(json, tagNonPlainValue);
  try {
    const parsed = decode(text);
    if (typeof parsed === "object" && parsed !== null) return parsed;
  } catch {
    // The throw below reports a text that cannot be decoded, as it does a value that is no object.
  }
  throw new InvalidInputError("importDag takes the JSON of a graph, as exportDag() gives it.");
}

/**
 * A replacer for `JSON.stringify` that tags values which JSON cannot express. Arrays and plain objects are returned
 * unchanged, because the caller may pass parsed JSON in which such values are already tagged.
 */
function tagNonPlainValue(this: Record<string, unknown>, key: string): unknown {
  const value = this[key];
  const isPlain = Array.isArray(value) || Object.prototype.toString.call(value) === "[object Object]";
  return isPlain
    ? value
    : JSON.parse(encode(value, { label: `"${key}" of the graph`, limitBytes: Number.POSITIVE_INFINITY }));
}

function checkNode(id: string, node: unknown): void {
  const { name, job, depends_on } = (node ?? {}) as Partial<FrozenNode>;
  if (checkName("node", id).includes(scopeSeparator))
    throw new InvalidInputError(`The node id "${id}" contains "${scopeSeparator}"; choose another.`);
  checkName("node", name);
  if (job !== undefined) checkName("job", job);
  if (!Array.isArray(depends_on) || depends_on.some((nodeId) => typeof nodeId !== "string"))
    throw new InvalidInputError(`depends_on of node "${name}" (${id}) must be a list of ids.`);
}

const dagOptions = new Set<string>(["concurrency", "onNodeFailure"] satisfies (keyof DagOptions)[]);

export function checkDagOptions(options: DagOptions): DagOptions {
  checkOptions("A graph", options, dagOptions);
  const { concurrency, onNodeFailure } = options;
  if (concurrency !== undefined) checkWholeNumber("The concurrency of a graph", concurrency);
  if (onNodeFailure !== undefined && onNodeFailure !== "stop" && onNodeFailure !== "continue")
    throw new InvalidInputError(`onNodeFailure of a graph is "stop" or "continue", not ${String(onNodeFailure)}.`);
  return {
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(onNodeFailure === undefined ? {} : { onNodeFailure }),
  };
}

function checkDag(workflow: string, nodes: FrozenDag["nodes"]): void {
  const names = new Set<string>();
  for (const [id, { name, args, depends_on }] of Object.entries(nodes)) {
    // The arguments are encoded here only to check them: when the node runs, no caller could receive the error.
    encode(args, { label: `the arguments of node "${name}"` });
    if (names.has(name))
      throw new GraphError(`Graph "${workflow}" has two nodes called "${name}".`, { workflow, nodes: [name] });
    names.add(name);
    for (const dependency of depends_on) {
      if (Object.hasOwn(nodes, dependency)) continue;
      const message = `Node "${name}" (${id}) of graph "${workflow}" depends on ${dependency}, which is not in the graph.`;
      throw new GraphError(message, { workflow, nodes: [name, dependency] });
    }
  }
  checkAcyclic(workflow, nodes);
}

function checkAcyclic(workflow: string, nodes: FrozenDag["nodes"]): void {
  const { cycle } = topologicalSort(edgesOf(nodes));
  if (cycle === null) return;
  const path = cycle.map((id) => (nodes[id] as FrozenNode).name);
  throw new GraphError(
    `Graph "${workflow}" goes in a circle: ${path.join(" → ")}. Leave out one of these dependencies.`,
    { workflow, nodes: path },
  );
}

/**
 * Whether two graphs have the same nodes, arguments and options. Node ids (which are random) and `frozen_at` may differ.
 */
export function isSamePlan(first: FrozenDag, second: FrozenDag, isEqual: (a: unknown, b: unknown) => boolean): boolean {
  if (first.signature !== second.signature || !isEqual(first.options, second.options)) return false;
  const argsOf = (dag: FrozenDag) => new Map(Object.values(dag.nodes).map(({ name, args }) => [name, args]));
  const secondArgs = argsOf(second);
  return [...argsOf(first)].every(([name, args]) => isEqual(args, secondArgs.get(name)));
}

/** The ids of the nodes, each with the ids of the nodes that it depends on. */
export const edgesOf = (nodes: FrozenDag["nodes"]): [string, readonly string[]][] =>
  Object.entries(nodes).map(([id, { depends_on }]) => [id, depends_on]);

/** The stored graph of a run: the last imported graph, or else the run's input; null when the graph is defined in code. */
export function dagOf(
  run: { readonly version: string; readonly input: string },
  state: { readonly importedDag: FrozenDag | null },
  readInput: () => unknown = () => decode(run.input),
): FrozenDag | null {
  return state.importedDag ?? (run.version === frozenDagVersion ? (readInput() as FrozenDag) : null);
}

export const predecessorsInDag =
  ({ nodes }: FrozenDag): PredecessorsOf =>
  (node) =>
    nodes[node]?.depends_on ?? null;
