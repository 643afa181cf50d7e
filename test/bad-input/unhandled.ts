import { onTestFinished } from "vitest";

/**
 * What would have ended this process from here on, until the test ends: rejections that no code listens to, and
 * exceptions that no code catches.
 */
export function whatEndsTheProcess(): readonly unknown[] {
  const fatal: unknown[] = [];
  const hear = (error: unknown) => void fatal.push(error);
  for (const event of ["unhandledRejection", "uncaughtException"] as const) {
    const before = process.rawListeners(event) as ((...args: any[]) => void)[];
    process.removeAllListeners(event);
    process.on(event, hear);
    onTestFinished(() => {
      process.off(event, hear);
      for (const listener of before) process.on(event, listener);
    });
  }
  return fatal;
}
