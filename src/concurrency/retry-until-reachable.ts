import type { Runtime } from "../runtime/runtime.js";
import { Backoff } from "./backoff.js";

/** Reads until the database answers. What the log has decided must not fail because the database was away for a moment. */
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

/** The database was away, or asks to try again; nothing is wrong with what was asked. */
export function isTransient(error: unknown): boolean {
  return typeof error === "object" && error !== null && (error as { transient?: unknown }).transient === true;
}
