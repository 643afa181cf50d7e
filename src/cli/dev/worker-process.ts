/** The process in which the worker of `pawl dev` runs: it tells which files it has loaded, and does as it is told. */
import { createRequire } from "node:module";
import { watchLoaded } from "../load.js";
import type { Signaled } from "../stop-signal.js";
import { type FromWorker, type ToWorker, workerMark } from "./messages.js";

export const isWorkerProcess = (env: Readonly<Record<string, string | undefined>>): boolean =>
  env[workerMark] !== undefined && process.send !== undefined;

/** Tells of each file of the user's that is loaded from now on. */
export function tellOfFiles(): void {
  watchLoaded((path) => tell({ kind: "file", path }));
}

/** The code is loaded: comes back when the worker may begin. */
export async function mayBegin(files: readonly string[]): Promise<void> {
  // What was required rather than imported has gone past the hooks.
  const required = Object.keys(createRequire(import.meta.url).cache).filter((path) => !path.includes("node_modules"));
  for (const path of [...files, ...required]) tell({ kind: "file", path });
  const begun = new Promise<void>((resolve) => {
    process.on("message", (message: ToWorker) => {
      if (message.kind === "begin") resolve();
    });
  });
  const leave = () => process.exit(1);
  process.once("disconnect", leave);
  tell({ kind: "loaded" });
  await begun;
  process.off("disconnect", leave);
}

export const tellServing = (): void => tell({ kind: "serving" });

/** Asked by a message, as the process that supervises this one passes on what it was asked; and when that one is gone. */
export const supervised: Signaled = {
  on: (signal, listener) => {
    process.on(signal, listener);
    process.on("message", (message: ToWorker) => {
      if (message.kind === "stop" && message.signal === signal) listener(signal);
    });
    if (signal === "SIGTERM") process.on("disconnect", () => listener(signal));
  },
};

function tell(message: FromWorker): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}
