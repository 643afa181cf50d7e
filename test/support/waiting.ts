/** Waiting for facts instead of time: conditions, gates, and the error that a promise ends with. */

/**
 * Resolves when the condition holds; the test's own time limit is the only one. It looks again by timeouts, because a test
 * may have stopped all intervals. Most conditions ask a database, which other tests use as well, so it soon looks less often.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let pauseMs = 4; !(await condition()); pauseMs = Math.min(pauseMs * 1.2, 20)) {
    const thisPauseMs = pauseMs;
    await new Promise((resolve) => setTimeout(resolve, thisPauseMs));
  }
}

/**
 * For conditions about the transactions of InnoDB: the server shows them as they were when it was asked last, unless that was more than
 * 100 ms ago.
 */
export async function untilInInnodb(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 150));
}

/** A promise that the test resolves by calling `open`. */
export class Gate<T = void> {
  open: (value: T) => void = () => {};
  readonly opened = new Promise<T>((resolve) => {
    this.open = resolve;
  });
}

export const gate = <T = void>(): Gate<T> => new Gate<T>();

/** The error that a promise rejects with. */
export async function errorOf(promise: Promise<unknown>): Promise<any> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("It did not fail.");
}
