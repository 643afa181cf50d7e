#!/usr/bin/env node
/** The process of the `pawl` command: passes on its arguments and streams, and exits with the exit code. */
import { runProgram } from "./program.js";

const { stdout, stderr, argv, env } = process;

// A reader may close the pipe early (`pawl runs | head -1`). That must not stop a worker.
for (const stream of [stdout, stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

const exitCode = await runProgram(argv.slice(2), { stdout, stderr, env });
// The user's modules may have left handles open that would keep the process alive.
stdout.write("", () => process.exit(exitCode));
