/** Runs the Python programs as users do. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export interface Output {
  /** The exit code of the program. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program that must exist, with these variables in addition to those of this process. */
export async function runProgram(
  program: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<Output> {
  try {
    const env = { ...process.env, NO_PROXY: "127.0.0.1", ...variables };
    const { stdout, stderr } = await promisify(execFile)(program, args, { env });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string };
    if (code === "ENOENT")
      throw new Error(`This test runs ${program}, which is not installed here or not on the PATH.`);
    if (typeof code !== "number") throw error;
    return { code, stdout, stderr };
  }
}

/** @param file the name of a program in this folder */
export const runPython = (file: string, args: readonly string[], variables: Readonly<Record<string, string>>) =>
  runProgram("python3", [fileURLToPath(new URL(file, import.meta.url)), ...args], variables);
