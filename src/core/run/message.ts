/** Encodes commands as messages to runs, and decodes inbox rows. */

import { decode } from "../encoding/decode.js";
import { encode } from "../encoding/encode.js";
import type { Failure } from "../encoding/error-record.js";
import { callerNode } from "./lineage.js";
import { rangesOf } from "./ranges.js";
import type { Command, NodeResult } from "./stored-schema.js";
import { emptyList, type Message } from "./transition.js";

export type { Message } from "./transition.js";

export function encodeMessage(to: string, command: Command): Message {
  const { type, ...rest } = command;
  return { to, kind: type, data: encode(rest, { label: "message", limitBytes: Number.POSITIVE_INFINITY }) };
}

/** The command of an inbox row; null when its kind is unknown, because a newer version of Pawl has sent it. */
export function decodeMessage(row: { readonly kind: string; readonly data: string }): Command | null {
  if (!commandTypes.has(row.kind)) return null;
  return { type: row.kind, ...(decode(row.data) as object) } as Command;
}

/** All types of commands. `decodeMessage` returns null for a message of any other type. */
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
    startOverdue: true,
    limitFull: true,
    queueStart: true,
    reattempt: true,
    import: true,
    nodes: true,
    jobGone: true,
    blocked: true,
  } satisfies Record<Command["type"], true>),
);

/** The columns of a run that identify the call of the parent run that started it; see `RunSpec`. */
export interface ParentLink {
  readonly parentId: string | null;
  readonly parentNode: string | null;
  readonly parentIndex: number | null;
  readonly parentAttempt: number | null;
}

/**
 * The message that reports to the parent how a run ended; null for a run without a parent. The message of a map's child
 * does not contain its output, because a map may have thousands of children.
 */
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
    ...(status === "canceled" && typeof failure?.code === "string" ? { code: failure.code } : {}),
  });
}

/** Reports the end of children of a map. It is encoded only when it is stored, so that messages can be merged before. */
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

/** Reports the end of attempts at nodes. Like a `ChildrenMessage`, it is encoded only when it is stored. */
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

/**
 * Merges the messages about children of one map, or about nodes of one graph, that end in the same commit. The first of the
 * children's transitions contains the merged message; the others contain no message.
 */
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
    const mergedMessage = mergedByKey.get(key);
    if (mergedMessage === undefined) {
      // The message is copied, because the unmerged originals are sent if the commit has to be split.
      const copy = message.copy();
      mergedByKey.set(key, copy);
      result.push({ ...transition, messages: [copy] });
    } else {
      mergedMessage.add(message as never);
      result.push({ ...transition, messages: emptyList });
    }
  }
  return mergedByKey.size === 0 ? transitions : result;
}
