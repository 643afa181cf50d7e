// One contender's turn, from outside: a process is forked for it, and its messages are collected.

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { makeDatabase } from "./database.mjs";

const program = fileURLToPath(new URL("contender.mjs", import.meta.url));
/** The slowest turn takes half a minute; one that hangs must not delay the others for long. */
const longestMs = 180_000;

/**
 * What one contender did in one round: `{ settings, outcomes, failure }`. A failure does not discard what was measured
 * before it. `signal` aborts the turn; its process and its database are gone when this returns.
 */
export async function takeTurn({ name, withoutDatabase }, workloads, size, signal) {
  const turn = { settings: undefined, outcomes: new Map(), failure: undefined };
  const database = withoutDatabase ? undefined : await makeDatabase();
  try {
    const args = [name, workloads.join(","), size, ...(database ? [database.url] : [])];
    // Deprecation warnings of the peers are not relevant here.
    const child = fork(program, args, { execArgv: ["--no-deprecation"] });
    await listen(child, turn, signal);
  } finally {
    await database?.drop();
  }
  return turn;
}

async function listen(child, turn, signal) {
  const end = () => child.kill("SIGKILL");
  const timer = setTimeout(() => {
    turn.failure = `it did not end within ${longestMs / 1000} s`;
    end();
  }, longestMs);
  signal.addEventListener("abort", end);
  let done = false;
  child.on("message", ({ kind, id, settings, reason, ...outcome }) => {
    if (kind === "opened") turn.settings = settings;
    if (kind === "measured") turn.outcomes.set(id, outcome);
    if (kind === "failed") turn.failure = reason;
    if (kind === "done") done = true;
  });
  const [code, killedBy] = await once(child, "exit");
  clearTimeout(timer);
  signal.removeEventListener("abort", end);
  if (!done) turn.failure ??= `its process ended (${killedBy ?? `exit code ${code}`})`;
}
