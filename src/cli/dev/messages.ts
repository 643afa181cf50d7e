/** What `pawl dev` and the process in which its worker runs tell each other. */

/** Set in the environment of the worker's process. */
export const workerEnvVariable = "PAWL_DEV_WORKER";

export type WorkerMessage =
  /** The code depends on this file. */
  | { readonly kind: "file"; readonly path: string }
  /** The code is loaded; the worker begins when it is told to. */
  | { readonly kind: "loaded" }
  | { readonly kind: "serving" };

export type SupervisorMessage = { readonly kind: "begin" } | { readonly kind: "stop"; readonly signal: NodeJS.Signals };
