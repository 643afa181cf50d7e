/**
 * What `npm start` shows: a process works on orders, the process is killed half-way, another one continues, and in the
 * end the books are right. Everything is real: SQLite in a file, two worker processes, `kill -9`. The dashboard shows it
 * live; with `--stay` it remains, with a worker, until Ctrl-C.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { connect, type Logger, type Pawl, type RunHandle } from "pawl";
import { type ServedDashboard, serveDashboard } from "./dashboard.js";
import { Ledger } from "./ledger.js";
import { orderWorkflow, stepNames } from "./order.js";
import { progressOf, type RunProgress } from "./progress.js";
import { type Row, rowsOf, tableOf } from "./report.js";
import { bold, dim, green, link, red, Screen } from "./screen.js";
import { WorkerProcess } from "./worker-process.js";

const orders = 12;
const steps = orders * stepNames.length;
const patienceMs = 90_000;
const stays = process.argv.includes("--stay");

const folder = mkdtempSync(join(tmpdir(), "pawl-demo-"));
const places = { database: `sqlite:${join(folder, "pawl.db")}`, ledger: join(folder, "ledger.jsonl") };
const ledger = new Ledger(places.ledger);
const screen = new Screen();
const giveUpAt = performance.now() + patienceMs;

/** For a while no worker executes the orders. That is intended here, so no warning is printed. */
const logger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: (...args) => screen.say(args.join(" ")),
};
const pawl = await connect(places.database, { logger });
const dashboard = await serveDashboard(pawl);
let isRight = false;
try {
  const rows = await tellStory(pawl);
  isRight = rows.every(({ holds }) => holds);
  if (stays) await stay(dashboard);
} catch (error) {
  screen.say(red(`\nThe demo could not be finished: ${error instanceof Error ? error.message : String(error)}`));
}
dashboard.close();
await pawl.close();
if (isRight) rmSync(folder, { recursive: true, force: true });
else screen.say(`The database and the ledger are in ${folder}.`);
// Also ends a worker that is still running.
process.exit(isRight ? 0 : 1);

async function tellStory(pawl: Pawl): Promise<Row[]> {
  screen.say(bold("\nPawl: durable workflows on an SQLite file. A worker will be killed; nothing will be lost.\n"));
  screen.say(`  ${bold("Watch it live:")}  ${link(dashboard.url)}`);
  screen.say(
    dim(
      `  ${stays ? "It stays until Ctrl-C." : "It ends with the demo; with --stay it remains: npm start -- --stay"}\n`,
    ),
  );
  const numbers = Array.from({ length: orders }, (_, index) => ({ number: index + 1 }));
  const runs = await pawl.startMany(orderWorkflow(ledger), numbers);
  screen.say(`${orders} orders of ${stepNames.length} steps (${stepNames.join(", ")}) are in the database.`);
  screen.say(
    dim("Each step also has an effect outside: it appends a line to a ledger file, which no crash takes back.\n"),
  );

  const first = new WorkerProcess("worker 1", places);
  screen.say(`${bold("Worker 1")} starts, process ${first.pid}. Six orders at a time.`);
  await watch(runs, first, (now) => stepsOf(now) >= steps / 2);
  const killedBy = await first.kill();
  if (killedBy !== "SIGKILL") throw new Error(`${first.name} ended before it could be killed.`);
  const atDeath = await Promise.all(runs.map(progressOf));
  const inFlight = ledger.read().length - stepsOf(atDeath);
  screen.show(atDeath, { keep: true });
  screen.mark(atDeath);
  screen.say(
    red(bold(`\n  ✗  kill -9 ${first.pid}: worker 1 is dead (${killedBy}), in the middle of ${inFlight} steps.`)),
  );
  screen.say(
    `     ${stepsOf(atDeath)} of ${steps} steps are recorded. ${inFlight} more have had their effect, but no record of it.\n`,
  );

  const second = new WorkerProcess("worker 2", places);
  screen.say(
    `${bold("Worker 2")} starts, process ${second.pid}. What worker 1 had is free once its lease of 2 s has run out.`,
  );
  await watch(runs, second, (now) => now.every(({ status }) => status === "completed"));
  const atEnd = await Promise.all(runs.map(progressOf));
  screen.show(atEnd, { keep: true });
  screen.say(dim("  ■ recorded by worker 1   ◆ recorded by worker 2"));
  await second.stop();
  await Promise.all(runs.map((run) => run.result({ timeout: "5s" })));

  const verification = await pawl.verify();
  const pids = { killedPid: first.pid, secondPid: second.pid };
  const rows = rowsOf({ runs: atEnd, effects: ledger.read(), verification, ...pids });
  report(rows);
  return rows;
}

/** Keeps the dashboard and its orders until Ctrl-C, with a worker, so that orders can be started and commanded there. */
async function stay({ url }: ServedDashboard): Promise<void> {
  const stopped = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  const third = new WorkerProcess("worker 3", places);
  screen.say(`The orders are in the dashboard, and worker 3 executes those that you start there: ${link(url)}`);
  screen.say("Ctrl-C ends the demo and deletes its database.");
  await stopped;
  await third.stop();
  screen.say("\nThe demo has ended.");
}

/** Shows the progress of the runs until the condition holds. */
async function watch(
  runs: readonly RunHandle<any, any>[],
  worker: WorkerProcess,
  isFarEnough: (now: readonly RunProgress[]) => boolean,
): Promise<void> {
  for (;;) {
    const now = await Promise.all(runs.map(progressOf));
    if (isFarEnough(now)) return;
    screen.show(now);
    if (!worker.isRunning) throw new Error(`${worker.name} ended by itself. ${worker.said.at(-1) ?? ""}`);
    if (performance.now() > giveUpAt) throw new Error(`It was not done after ${patienceMs / 1_000} s.`);
    await pause(100);
  }
}

function stepsOf(runs: readonly RunProgress[]): number {
  return runs.reduce((sum, { done }) => sum + done, 0);
}

function report(rows: readonly Row[]): void {
  screen.say(bold("\nThe account, from the histories of the runs and the ledger:\n"));
  for (const [index, text] of tableOf(rows).entries())
    screen.say(index > 0 && rows[index - 1]?.holds === false ? red(text) : text);
  screen.say(
    rows.every(({ holds }) => holds)
      ? green("\nEvery order was completed, and no step that was recorded ever ran again.")
      : red("\nThis is not as it should be: please report it."),
  );
  screen.say(
    dim(
      "A step that was in flight runs again with the same idempotency key, so that a payment provider charges once.\n",
    ),
  );
}
