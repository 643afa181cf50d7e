/** Messages to runs: a command as a row of an inbox, and back. */

import { decode } from "../encoding/decode.js";
import { encode } from "../encoding/encode.js";
import type { Failure } from "../encoding/error-record.js";
import { callerNode } from "./lineage.js";
import { rangesOf } from "./ranges.js";
import type { Command, NodeResult } from "./stored-schema.js";
import { emptyList } from "./transition.js";

export interface Message {
  readonly to: string;
  readonly kind: string;
  readonly data: string;
}

export function encodeMessage(to: string, command: Command): Message {
  const { type, ...rest } = command;
  return { to, kind: type, data: encode(rest, { label: "message", limitBytes: Number.POSITIVE_INFINITY }) };
}

/** null for what this version does not understand: a newer one may have sent it. */
export function decodeMessage(row: { readonly kind: string; readonly data: string }): Command | null {
  if (!commandTypes.has(row.kind)) return null;
  return { type: row.kind, ...(decode(row.data) as object) } as Command;
}

/** All of them: a message of a kind that is missing here would be passed over. */
const commandTypes = new Set<string>(
  Object.keys({
    signal: true,
    pause: true,
    resume: true,
    resumeAt: true,
    skip: true,
    cancel: true,
    child: true,
    children: true,
    start: true,
    reattempt: true,
    import: true,
    nodes: true,
    jobGone: true,
    blocked: true,
  } satisfies Record<Command["type"], true>),
);

export interface ParentLink {
  readonly parentId: string | null;
  readonly parentNode: string | null;
  readonly parentIndex: number | null;
  readonly parentAttempt: number | null;
}

/** Tells the parent how a run ended. A map's children keep their results to themselves: there may be thousands. */
export function createParentMessage(
  run: ParentLink,
  status: "completed" | "failed" | "canceled",
  output: string | null,
  failure: Failure | null,
  attemptResult: { readonly retryMs: number | null; readonly ms: number } = { retryMs: null, ms: 0 },
): Message | null {
  const { parentId, parentIndex, parentAttempt } = run;
  if (parentId === null || run.parentNode === null) return null;
  const parentNode = callerNode(run.parentNode);
  if (parentAttempt !== null) {
    const error =
      status === "completed" ? null : (failure ?? { name: "RunCanceledError", message: "It was canceled." });
    return new NodesMessage(parentId, [{ node: parentNode, attempt: parentAttempt, output, error, ...attemptResult }]);
  }
  if (parentIndex !== null) {
    const [completed, failed] = status === "completed" ? [[parentIndex], []] : [[], [parentIndex]];
    return new ChildrenMessage(parentId, parentNode, completed, failed);
  }
  return encodeMessage(parentId, {
    type: "child",
    node: parentNode,
    status,
    output,
    error: status === "failed" ? failure : null,
    reason: status === "canceled" ? (failure?.message ?? null) : null,
  });
}

/** News of a map's children. It is not written out before it is stored, so that several can become one. */
class ChildrenMessage implements Message {
  readonly kind = "children";
  readonly to: string;
  readonly node: string;
  readonly completed: number[];
  readonly failed: number[];

  constructor(to: string, node: string, completed: number[], failed: number[]) {
    this.to = to;
    this.node = node;
    this.completed = completed;
    this.failed = failed;
  }

  copy(): ChildrenMessage {
    return new ChildrenMessage(this.to, this.node, [...this.completed], [...this.failed]);
  }

  add({ completed, failed }: ChildrenMessage): void {
    this.completed.push(...completed);
    this.failed.push(...failed);
  }

  get data(): string {
    const { node, completed, failed } = this;
    return encodeMessage(this.to, {
      type: "children",
      node,
      completed: rangesOf(completed),
      failed: rangesOf(failed),
    }).data;
  }
}

/** News of nodes that were handed to others. */
class NodesMessage implements Message {
  readonly kind = "nodes";
  readonly to: string;
  readonly results: NodeResult[];

  constructor(to: string, results: NodeResult[]) {
    this.to = to;
    this.results = results;
  }

  copy(): NodesMessage {
    return new NodesMessage(this.to, [...this.results]);
  }

  add({ results }: NodesMessage): void {
    this.results.push(...results);
  }

  get data(): string {
    return encodeMessage(this.to, { type: "nodes", results: this.results }).data;
  }
}

/** Children of one map, and nodes of one graph, that end in the same commit tell their run in one message, with the first transition of them. */
export function mergeMessages<T extends { readonly messages: readonly Message[] }>(
  transitions: readonly T[],
): readonly T[] {
  const mergedByKey = new Map<string, ChildrenMessage | NodesMessage>();
  const result: T[] = [];
  for (const transition of transitions) {
    const [message] = transition.messages;
    if (transition.messages.length !== 1 || !(message instanceof ChildrenMessage || message instanceof NodesMessage)) {
      result.push(transition);
      continue;
    }
    const key = message instanceof ChildrenMessage ? `${message.to}/${message.node}` : message.to;
    const first = mergedByKey.get(key);
    if (first === undefined) {
      // A copy: when the commit has to be split, each is on its own again.
      const copy = message.copy();
      mergedByKey.set(key, copy);
      result.push({ ...transition, messages: [copy] });
    } else {
      first.add(message as never);
      result.push({ ...transition, messages: emptyList });
    }
  }
  return mergedByKey.size === 0 ? transitions : result;
}
