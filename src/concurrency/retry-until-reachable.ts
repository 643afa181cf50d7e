import type { Runtime } from "../runtime/runtime.js";
import { Backoff } from "./backoff.js";

/**
 * Retries a read until the database answers, because a run must not fail over a short outage of the database. Errors that
 * are not transient, and every error once `shouldGiveUp` returns true, are thrown.
 */
export async function retryUntilReachable<T>(
  runtime: Runtime,
  read: () => Promise<T>,
  shouldGiveUp: () => boolean,
): Promise<T> {
  const backoff = new Backoff(runtime);
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (!isTransient(error) || shouldGiveUp()) throw error;
      await backoff.wait();
    }
  }
}

/** Whether a repeated call may succeed, because the database was unreachable or reported a conflict such as a deadlock. */
export function isTransient(error: unknown): boolean {
  return typeof error === "object" && error !== null && (error as { transient?: unknown }).transient === true;
}
