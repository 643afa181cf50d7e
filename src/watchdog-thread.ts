/** The program of the watchdog's thread, see `worker/watchdog/watchdog.ts`. It loads the database's driver only when it needs it. */
import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import type { Timer } from "./runtime/runtime.js";
import { systemRuntime as runtime } from "./runtime/system.js";
import { Frames } from "./worker/watchdog/frames.js";
import { LoopWatch } from "./worker/watchdog/loop-watch.js";
import type { WatchdogData, WatchdogMessage } from "./worker/watchdog/watchdog.js";

const { memory, url, options } = workerData as WatchdogData;

const watch = new LoopWatch({
  frames: new Frames(memory),
  open: async () => {
    const { openStore } = await import("./connect.js");
    return openStore(url, { notify: true, ...options });
  },
  // Straight to the file: the streams of a thread pass through the event loop that is blocked.
  say: (text) => void writeSync(2, `${text}\n`),
});

let timer: Timer | undefined;
function keepLooking(): void {
  runtime.clearInterval(timer);
  const { everyMs } = watch;
  if (everyMs !== null) timer = runtime.setInterval(() => void watch.look(runtime.threadClock()), everyMs);
}

parentPort?.on("message", (message: WatchdogMessage) => {
  if (message.kind === "renewed") return watch.renewed(message.index, message.at);
  if (message.kind === "watch") watch.watch(message.worker);
  else watch.leave(message.index);
  keepLooking();
});
