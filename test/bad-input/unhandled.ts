import { onTestFinished } from "vitest";

/** Collects what would have ended this process until the test ends: unhandled rejections and uncaught exceptions. */
export function collectFatalErrors(): readonly unknown[] {
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
