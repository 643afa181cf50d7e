/** Messages to runs: a command as a row of an inbox, and back. */
import { decode, encode } from "./codec.js";
import type { Command } from "./decide.js";
import type { Failure } from "./failure.js";

export interface Message {
  readonly to: string;
  readonly kind: string;
  readonly data: string;
}

export function writeMail(to: string, command: Command): Message {
  const { type, ...rest } = command;
  return { to, kind: type, data: encode(rest, { what: "message", limit: Number.POSITIVE_INFINITY }) };
}

/** null for what this version does not understand: a newer one may have sent it. */
export function readMail(row: { readonly kind: string; readonly data: string }): Command | null {
  if (!known.has(row.kind)) return null;
  return { type: row.kind, ...(decode(row.data) as object) } as Command;
}

const known = new Set<string>(["signal", "pause", "resume", "skip", "cancel", "child"] satisfies Command["type"][]);

export interface Kin {
  readonly parentId: string | null;
  readonly parentNode: string | null;
  readonly parentIndex: number | null;
}

/** Tells the parent how a run ended. A map's children keep their results to themselves: there may be thousands. */
export function mailToParent(
  run: Kin,
  status: "completed" | "failed" | "canceled",
  output: string | null,
  failure: Failure | null,
): Message | null {
  if (run.parentId === null || run.parentNode === null) return null;
  const single = run.parentIndex === null;
  return writeMail(run.parentId, {
    type: "child",
    node: run.parentNode,
    index: run.parentIndex,
    status,
    output: single ? output : null,
    error: single && status === "failed" ? failure : null,
    reason: single && status === "canceled" ? (failure?.message ?? null) : null,
  });
}
