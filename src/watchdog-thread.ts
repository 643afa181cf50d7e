/**
 * The module that the watchdog's thread executes: see `worker/watchdog/watchdog.ts`. It loads the database driver on
 * first use.
 */
import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import type { Timer } from "./runtime/runtime.js";
import { systemRuntime as runtime } from "./runtime/system.js";
import { Frames } from "./worker/watchdog/frames.js";
import { LoopWatch } from "./worker/watchdog/loop-watch.js";
import type { WatchdogData, WatchdogMessage } from "./worker/watchdog/watchdog.js";

const { memory, url, options } = workerData as WatchdogData;

const loopWatch = new LoopWatch({
  frames: new Frames(memory),
  openStore: async () => {
    const { openStore } = await import("./connect.js");
    return openStore(url, { notify: true, ...options });
  },
  // The text is written directly to stderr, because the output streams of a thread pass through the blocked event loop.
  print: (text) => void writeSync(2, `${text}\n`),
});

let timer: Timer | undefined;
function restartPolling(): void {
  runtime.clearInterval(timer);
  const { checkIntervalMs } = loopWatch;
  if (checkIntervalMs !== null)
    timer = runtime.setInterval(() => void loopWatch.check(runtime.processMonotonic()), checkIntervalMs);
}

parentPort?.on("message", (message: WatchdogMessage) => {
  if (message.kind === "renewed") return loopWatch.noteLeaseRenewed(message.index, message.at);
  if (message.kind === "watch") loopWatch.watch(message.worker);
  else loopWatch.unwatch(message.index);
  restartPolling();
});
