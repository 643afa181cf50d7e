/**
 * Where a file does not parse, and why. Every tool that reads TypeScript says so in a way of its own, most of them in
 * several lines of which the first says nothing; for JavaScript, Node tells only those who let the error end the process.
 */
import { spawnSync } from "node:child_process";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";

/** "src/order.ts:12: Expected ")" but found ";"", or null if the error is another. */
export function syntaxErrorIn(error: unknown, path: string): string | null {
  if (!(error instanceof Error)) return null;
  return fromEsbuild(error) ?? fromSwc(error) ?? fromNode(error) ?? fromNodeCheck(error, path);
}

function fromEsbuild({ message }: Error): string | null {
  const [, file, line, text] = /^(.+?):(\d+):\d+: ERROR: (.+)$/m.exec(message) ?? [];
  return formatLocation(file, line, text);
}

/** A picture, with the sentence above and the place in its frame. */
function fromSwc({ message }: Error): string | null {
  const [, text] = /^\s*[x×]\s+(.+)$/m.exec(message) ?? [];
  const [, file, line] = /^\s*[,╭][-─]\[(.+?):(\d+):\d+\]/m.exec(message) ?? [];
  return formatLocation(file, line, text);
}

/** Where Node reads TypeScript itself, the place is above the stack. */
function fromNode({ code, message, stack = "" }: NodeJS.ErrnoException): string | null {
  if (code !== "ERR_INVALID_TYPESCRIPT_SYNTAX" && code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") return null;
  const [, file, line] = /^(\S.*?):(\d+)\n/.exec(stack) ?? [];
  return formatLocation(file, line, message.trim().split("\n")[0]);
}

/** Only this file: one that it imports may be to blame. */
function fromNodeCheck(error: Error, path: string): string | null {
  if (!(error instanceof SyntaxError) || !/\.[mc]?js$/.test(path)) return null;
  const { stderr } = spawnSync(process.execPath, ["--check", path], { encoding: "utf8" });
  const [, file, line] = /^(\S.*?):(\d+)\n/.exec(stderr) ?? [];
  return formatLocation(file, line, error.message);
}

function formatLocation(file: string | undefined, line: string | undefined, text: string | undefined): string | null {
  if (file === undefined || line === undefined || text === undefined) return null;
  const path = file.startsWith("file:") ? fileURLToPath(file) : file;
  return `${relative(process.cwd(), path)}:${line}: ${text.trim()}`;
}
