/** Milliseconds that only grow, and that mean the same in all threads of a process (`performance.now()` does not). */
export const monotonicMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;
