/** The messages between `pawl dev` and the process of its worker. */

/** Set in the environment of the worker's process. */
export const workerEnvVariable = "PAWL_DEV_WORKER";

export type WorkerMessage =
  /** The code depends on this file. */
  | { readonly kind: "file"; readonly path: string }
  /** The code is loaded; the worker waits for the message to start. */
  | { readonly kind: "loaded" }
  /** The worker has started. */
  | { readonly kind: "ready" };

export type SupervisorMessage =
  /** The worker may start; it prints the address of the dashboard. */
  | { readonly kind: "start"; readonly dashboardUrl: string | null }
  | { readonly kind: "stop"; readonly signal: NodeJS.Signals };
