/**
 * A graph that was built at run time, frozen as data: what was planned, without any code. It is the input of its run, or
 * the latest that was imported into it, and it never changes by itself.
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

export interface FrozenNode {
  readonly name: string;
  /** The job that it runs; without one it is a step of the run's own class. */
  readonly job?: string;
  readonly args?: unknown;
  /** The ids of the nodes that it comes after. */
  readonly depends_on: readonly string[];
}

export interface FrozenDag {
  readonly version: 1;
  /** Changes when names, jobs or dependencies do. */
  readonly signature: string;
  readonly frozen_at: string;
  /** How the run treats it, where that is not the default. */
  readonly options?: DagOptions;
  readonly nodes: Readonly<Record<string, FrozenNode>>;
}

export interface DagOptions {
  /** How many nodes may be executed at a time; default: all that can be. */
  readonly concurrency?: number;
  /** When a node has failed for good: begin nothing new ("stop", the default), or all that does not depend on it. */
  readonly onNodeFailure?: "stop" | "continue";
}

export function freezeDag(
  workflow: string,
  nodes: Readonly<Record<string, FrozenNode>>,
  frozenAt: Date,
  options: DagOptions = {},
): FrozenDag {
  checkDag(workflow, nodes);
  return signDag(nodes, frozenAt, options);
}

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

/** For people. What JSON has no words for, in arguments, is marked as it is where it is stored. */
export function dagAsJson(dag: FrozenDag): string {
  const text = encode(dag, { label: "graph", limitBytes: Number.POSITIVE_INFINITY });
  return `${JSON.stringify(JSON.parse(text), null, 2)}\n`;
}

/** What a person edited by hand, as far as that makes a graph; what does not is refused by name. */
export function parseDag(workflow: string, json: unknown): FrozenDag {
  const { version, frozen_at, nodes, options = {} } = parseDagJson(json);
  if (version !== 1)
    throw new InvalidInputError(`importDag takes a graph of version 1, not ${JSON.stringify(version)}.`);
  if (typeof nodes !== "object" || nodes === null || Array.isArray(nodes) || Object.keys(nodes).length === 0)
    throw new InvalidInputError("importDag takes a graph with `nodes` by their ids.");
  for (const [id, node] of Object.entries(nodes)) checkNode(id, node);
  const at = new Date(frozen_at ?? "");
  if (Number.isNaN(at.getTime()))
    throw new InvalidInputError("importDag takes a graph that says when it was `frozen_at`.");
  return freezeDag(workflow, nodes, at, checkDagOptions(options));
}

function parseDagJson(json: unknown): Partial<FrozenDag> {
  const text = typeof json === "string" ? json : JSON.stringify(json, tagNonPlainValue);
  try {
    const parsed = decode(text);
    if (typeof parsed === "object" && parsed !== null) return parsed;
  } catch {
    // Told below.
  }
  throw new InvalidInputError("importDag takes the JSON of a graph, as exportDag() gives it.");
}

/** An object may be what the caller has parsed, with the marks of the JSON, or have values that are to be marked yet. */
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
  if (!Array.isArray(depends_on) || depends_on.some((one) => typeof one !== "string"))
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
    // Now, and not when it is to run: by then no caller is there to be told.
    encode(args, { label: `the arguments of node "${name}"` });
    if (names.has(name))
      throw new GraphError(`Graph "${workflow}" has two nodes called "${name}".`, { workflow, nodes: [name] });
    names.add(name);
    for (const before of depends_on) {
      if (Object.hasOwn(nodes, before)) continue;
      const message = `Node "${name}" (${id}) of graph "${workflow}" depends on ${before}, which is not in the graph.`;
      throw new GraphError(message, { workflow, nodes: [name, before] });
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

/** Whether two graphs are one plan: their ids are random, and when they were frozen does not matter. */
export function isSamePlan(first: FrozenDag, second: FrozenDag, isEqual: (a: unknown, b: unknown) => boolean): boolean {
  if (first.signature !== second.signature || !isEqual(first.options, second.options)) return false;
  const argsOf = (dag: FrozenDag) => new Map(Object.values(dag.nodes).map(({ name, args }) => [name, args]));
  const secondArgs = argsOf(second);
  return [...argsOf(first)].every(([name, args]) => isEqual(args, secondArgs.get(name)));
}

export const edgesOf = (nodes: FrozenDag["nodes"]): [string, readonly string[]][] =>
  Object.entries(nodes).map(([id, { depends_on }]) => [id, depends_on]);

/** The graph that a run goes by, if it is not its code's: the one that was imported, or the one it was born with. */
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
