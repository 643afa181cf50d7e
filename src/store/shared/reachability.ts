/**
 * Whether a server can be reached. During an outage every statement, connection and worker fails on its own; the log
 * gets one line for the outage and one when the server answers again.
 */
import type { StoreOptions } from "../contract/store.js";

/** How long closing a store waits for answers of the server. */
export const closeTimeoutMs = 3_000;

export class ServerReachability {
  readonly #onWarning: NonNullable<StoreOptions["onWarning"]>;
  #isUnreachable = false;
  #failureCount = 0;

  constructor(onWarning: NonNullable<StoreOptions["onWarning"]>) {
    this.#onWarning = onWarning;
  }

  /** Callers read this before they send a statement, and pass it to `recordAnswer`. */
  get failureCount(): number {
    return this.#failureCount;
  }

  recordFailure(error: unknown): void {
    this.#failureCount += 1;
    if (this.#isUnreachable) return;
    this.#isUnreachable = true;
    this.#onWarning(`cannot be reached (${describeError(error)}); trying again.`);
  }

  /**
   * @param failureCount the count before the statement was sent: an answer to a statement that was sent before the last
   * failure does not prove that the server can be reached now
   */
  recordAnswer(failureCount: number): void {
    if (!this.#isUnreachable || failureCount !== this.#failureCount) return;
    this.#isUnreachable = false;
    this.#onWarning("reached again.");
  }
}

/** "connect ECONNREFUSED 127.0.0.1:5432", "57P01 terminating connection due to administrator command" */
export function describeError(error: unknown): string {
  // Connecting to a host with several addresses fails with one error per address and an empty message.
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(describeError).join(", ");
  const { code, message = String(error) } = error as { readonly code?: unknown; readonly message?: string };
  const [line] = message.split("\n") as [string];
  return typeof code !== "string" || line.includes(code) ? line : `${code} ${line}`.trimEnd();
}
