// Runs other programs: in the foreground, or for their output.

import { execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const root = fileURLToPath(new URL("..", import.meta.url));

/** The path of a program from the dev dependencies. */
export const tool = (name) => join(root, "node_modules", ".bin", name);

/**
 * Runs a program on this terminal, in the repository's root, and returns its exit code. With `wholeGroup`, a signal
 * that ends this process also ends the program's children, for programs that would leave them behind (Vitest its
 * workers).
 */
export function run(program, args, { env = process.env, wholeGroup = false } = {}) {
  const child = spawn(program, args, { cwd: root, env, stdio: "inherit", detached: wholeGroup });
  const forward = (signal) => {
    if (wholeGroup) process.kill(-child.pid, signal);
    // Ctrl-C reaches a child on the same terminal by itself; a `kill` reaches only this process.
    else if (signal !== "SIGINT") child.kill(signal);
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, forward);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => {
      for (const signal of signals) process.off(signal, forward);
      resolve(code ?? 1);
    });
  });
}

/** The output of a program. Throws with that output when the program fails. */
export async function capture(program, args, options = {}) {
  const { stdout } = await promisify(execFile)(program, args, { encoding: "utf8", timeout: 120_000, ...options });
  return stdout;
}
