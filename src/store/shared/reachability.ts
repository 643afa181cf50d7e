/**
 * Whether a server can be reached. Every statement, connection and worker finds out for itself that it cannot; that is told
 * once, in one line, and once more when it answers again.
 */
import type { StoreOptions } from "../contract/store.js";

/** How long a store that is being closed waits for an answer. */
export const closingPatienceMs = 3_000;

export class Reach {
  readonly #onTrouble: NonNullable<StoreOptions["onTrouble"]>;
  #isAway = false;
  #losses = 0;

  constructor(onTrouble: NonNullable<StoreOptions["onTrouble"]>) {
    this.#onTrouble = onTrouble;
  }

  /** To be noted before the server is asked something, for `answered`. */
  get losses(): number {
    return this.#losses;
  }

  lost(error: unknown): void {
    this.#losses += 1;
    if (this.#isAway) return;
    this.#isAway = true;
    this.#onTrouble(`cannot be reached (${causeInWords(error)}); trying again.`);
  }

  /** @param losses when it was asked: what was under way as the server went says nothing about now */
  answered(losses: number): void {
    if (!this.#isAway || losses !== this.#losses) return;
    this.#isAway = false;
    this.#onTrouble("reached again.");
  }
}

/** "connect ECONNREFUSED 127.0.0.1:5432", "57P01 terminating connection due to administrator command" */
export function causeInWords(error: unknown): string {
  // Of a host with several addresses: an error for each of them, and no message of its own.
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(causeInWords).join(", ");
  const { code, message = String(error) } = error as { readonly code?: unknown; readonly message?: string };
  const [line] = message.split("\n") as [string];
  return typeof code !== "string" || line.includes(code) ? line : `${code} ${line}`.trimEnd();
}
