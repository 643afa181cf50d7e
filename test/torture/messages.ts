/** The messages between the campaign and its processes. */
import type { StoreName } from "./stores.js";

export interface ProcessOptions {
  readonly url: string;
  readonly store: StoreName;
  /** The folder of the ledger. */
  readonly ledger: string;
  readonly name: string;
  readonly seed: number;
  readonly leaseMs: number;
}

export type Order =
  | { readonly kind: "command"; readonly command: OperatorCommand; readonly run: string }
  | { readonly kind: "pace"; readonly mayStart: boolean }
  | { readonly kind: "stop" };

export type OperatorCommand = "pause" | "resume" | "skip" | "cancel" | "signal";

export type Word =
  | { readonly kind: "ready" }
  | { readonly kind: "started"; readonly run: string; readonly workflow: string };
