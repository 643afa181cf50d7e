// Ends a server and removes its folder when the process that started it is gone: the parent's end of the pipe that is
// this standard input closes even when the parent is killed with -9 and none of its handlers can run.
//
//   node guardian.mjs <folder> <signal>
//
// Standard input: the server's process id, a line per start, and 0 when it stopped.

import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const [dir, signal] = process.argv.slice(2);
let pid;
for await (const line of createInterface({ input: process.stdin })) pid = Number(line);

if (pid && kill(signal)) {
  for (let tries = 0; tries < 100 && kill(0); tries++) await sleep(100);
  kill("SIGKILL");
}
rmSync(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });

function kill(what) {
  try {
    return process.kill(pid, what);
  } catch {
    return false;
  }
}
