/**
 * Whether a server can be reached. Every statement, connection and worker finds out for itself that it cannot; that is told
 * once, in one line, and once more when it answers again.
 */
import type { StoreOptions } from "../contract/store.js";

/** How long a store that is being closed waits for an answer. */
export const closeTimeoutMs = 3_000;

export class ServerReachability {
  readonly #onWarning: NonNullable<StoreOptions["onWarning"]>;
  #isUnreachable = false;
  #failureCount = 0;

  constructor(onWarning: NonNullable<StoreOptions["onWarning"]>) {
    this.#onWarning = onWarning;
  }

  /** To be noted before the server is asked something, for `answered`. */
  get failureCount(): number {
    return this.#failureCount;
  }

  recordFailure(error: unknown): void {
    this.#failureCount += 1;
    if (this.#isUnreachable) return;
    this.#isUnreachable = true;
    this.#onWarning(`cannot be reached (${describeError(error)}); trying again.`);
  }

  /** @param failureCount when it was asked: what was under way as the server went says nothing about now */
  recordAnswer(failureCount: number): void {
    if (!this.#isUnreachable || failureCount !== this.#failureCount) return;
    this.#isUnreachable = false;
    this.#onWarning("reached again.");
  }
}

/** "connect ECONNREFUSED 127.0.0.1:5432", "57P01 terminating connection due to administrator command" */
export function describeError(error: unknown): string {
  // Of a host with several addresses: an error for each of them, and no message of its own.
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(describeError).join(", ");
  const { code, message = String(error) } = error as { readonly code?: unknown; readonly message?: string };
  const [line] = message.split("\n") as [string];
  return typeof code !== "string" || line.includes(code) ? line : `${code} ${line}`.trimEnd();
}
