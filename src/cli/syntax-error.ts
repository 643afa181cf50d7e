/**
 * Finds the place and the reason of a syntax error. Every tool that reads TypeScript has its own format, most of them with
 * several lines of which the first says nothing. For JavaScript, Node prints the place only when the error ends the process.
 */
import { spawnSync } from "node:child_process";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";

/** "src/order.ts:12: Expected ")" but found ";"", or null if the error is not a syntax error. */
export function syntaxErrorIn(error: unknown, path: string): string | null {
  if (!(error instanceof Error)) return null;
  return fromEsbuild(error) ?? fromSwc(error) ?? fromNode(error) ?? fromNodeCheck(error, path);
}

function fromEsbuild({ message }: Error): string | null {
  const [, file, line, text] = /^(.+?):(\d+):\d+: ERROR: (.+)$/m.exec(message) ?? [];
  return formatLocation(file, line, text);
}

/** swc draws the code in a frame, with the place in the frame and the message above it. */
function fromSwc({ message }: Error): string | null {
  const [, text] = /^\s*[x×]\s+(.+)$/m.exec(message) ?? [];
  const [, file, line] = /^\s*[,╭][-─]\[(.+?):(\d+):\d+\]/m.exec(message) ?? [];
  return formatLocation(file, line, text);
}

/** When Node reads TypeScript itself, it puts the place above the stack. */
function fromNode({ code, message, stack = "" }: NodeJS.ErrnoException): string | null {
  if (code !== "ERR_INVALID_TYPESCRIPT_SYNTAX" && code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") return null;
  const [, file, line] = /^(\S.*?):(\d+)\n/.exec(stack) ?? [];
  return formatLocation(file, line, message.trim().split("\n")[0]);
}

/** Checks this file only: an error in a file that it imports is not found. */
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
