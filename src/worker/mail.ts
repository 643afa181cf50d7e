/** Messages between runs and to runs: a command as an inbox row, and back. */
import type { Command } from "../core/decide.js";
import type { Failure } from "../core/failure.js";
import { decode } from "../core/codec.js";
import type { InboxRow, Mail } from "../store/store.js";

export function writeMail(to: string, command: Command): Mail {
  const { type, ...rest } = command;
  const data = "error" in rest && rest.error !== null ? { ...rest, error: JSON.stringify(rest.error) } : rest;
  return { to, kind: type, data: JSON.stringify(data) };
}

/** null for what this version does not understand: a newer one may have sent it. */
export function readMail(row: InboxRow): Command | null {
  if (!known.has(row.kind)) return null;
  const data = JSON.parse(row.data) as Record<string, unknown>;
  if (typeof data["error"] === "string") data["error"] = decode(data["error"]) as Failure;
  return { type: row.kind, ...data } as Command;
}

const known = new Set(["signal", "pause", "resume", "skip", "cancel", "child"]);
