#!/usr/bin/env node
/** The command line as a process: its arguments, its streams, its exit code. */
import { runProgram } from "./program.js";

const { stdout, stderr, argv, env } = process;

// Whoever reads may have seen enough (`pawl runs | head -1`). That is no reason for a worker to stop.
for (const stream of [stdout, stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

const exitCode = await runProgram(argv.slice(2), { stdout, stderr, env });
// Modules of the user may have opened what nobody closes.
stdout.write("", () => process.exit(exitCode));
