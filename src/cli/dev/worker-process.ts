/** The process in which the worker of `pawl dev` runs: it tells which files it has loaded, and does as it is told. */
import { createRequire } from "node:module";
import { watchLoadedFiles } from "../module-loader.js";
import type { SignalSource } from "../stop-signal.js";
import { type SupervisorMessage, type WorkerMessage, workerEnvVariable } from "./messages.js";

export const isWorkerProcess = (env: Readonly<Record<string, string | undefined>>): boolean =>
  env[workerEnvVariable] !== undefined && process.send !== undefined;

/** Tells of each file of the user's that is loaded from now on. */
export function reportLoadedFiles(): void {
  watchLoadedFiles((path) => sendToSupervisor({ kind: "file", path }));
}

/** The code is loaded: comes back when the worker may begin. */
export async function waitForStart(files: readonly string[]): Promise<void> {
  // What was required rather than imported has gone past the hooks.
  const required = Object.keys(createRequire(import.meta.url).cache).filter((path) => !path.includes("node_modules"));
  for (const path of [...files, ...required]) sendToSupervisor({ kind: "file", path });
  const started = new Promise<void>((resolve) => {
    process.on("message", (message: SupervisorMessage) => {
      if (message.kind === "begin") resolve();
    });
  });
  const exit = () => process.exit(1);
  process.once("disconnect", exit);
  sendToSupervisor({ kind: "loaded" });
  await started;
  process.off("disconnect", exit);
}

export const reportReady = (): void => sendToSupervisor({ kind: "serving" });

/** Asked by a message, as the process that supervises this one passes on what it was asked; and when that one is gone. */
export const supervisorSignals: SignalSource = {
  on: (signal, listener) => {
    process.on(signal, listener);
    process.on("message", (message: SupervisorMessage) => {
      if (message.kind === "stop" && message.signal === signal) listener(signal);
    });
    if (signal === "SIGTERM") process.on("disconnect", () => listener(signal));
  },
};

function sendToSupervisor(message: WorkerMessage): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}
