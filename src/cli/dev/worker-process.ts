/** The worker's process of `pawl dev`: reports the files that it has loaded, and follows the supervisor's messages. */
import { createRequire } from "node:module";
import { watchLoadedFiles } from "../module-loader.js";
import type { SignalSource } from "../stop-signal.js";
import { type SupervisorMessage, type WorkerMessage, workerEnvVariable } from "./messages.js";

export const isWorkerProcess = (env: Readonly<Record<string, string | undefined>>): boolean =>
  env[workerEnvVariable] !== undefined && process.send !== undefined;

/** Reports each user file that is loaded from now on. */
export function reportLoadedFiles(): void {
  watchLoadedFiles((path) => sendToSupervisor({ kind: "file", path }));
}

/**
 * Reports that the code is loaded, and resolves when the worker may start.
 *
 * @returns the address of the dashboard, or null if there is none
 */
export async function waitForStart(files: readonly string[]): Promise<string | null> {
  // The module hooks do not see files that are loaded by `require`.
  const required = Object.keys(createRequire(import.meta.url).cache).filter((path) => !path.includes("node_modules"));
  for (const path of [...files, ...required]) sendToSupervisor({ kind: "file", path });
  const started = new Promise<string | null>((resolve) => {
    process.on("message", (message: SupervisorMessage) => {
      if (message.kind === "start") resolve(message.dashboardUrl);
    });
  });
  const exit = () => process.exit(1);
  process.once("disconnect", exit);
  sendToSupervisor({ kind: "loaded" });
  const dashboardUrl = await started;
  process.off("disconnect", exit);
  return dashboardUrl;
}

export const reportReady = (): void => sendToSupervisor({ kind: "ready" });

/**
 * Signals to stop arrive as messages, because the supervisor passes on its own signals. If the supervisor disconnects,
 * the worker stops as after SIGTERM.
 */
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
