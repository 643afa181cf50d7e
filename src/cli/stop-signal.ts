/** When a process is asked to end. Asked once more, it does so at once: its runs are taken over by others. */

/** The part of `process` that is used. */
export interface Signaled {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

export interface StopOptions {
  readonly process: Signaled;
  /** Milliseconds, of a clock that only goes forward. */
  readonly now: () => number;
  readonly leaveAtOnce: () => void;
}

/** `timeout` and shells send one to the process and one to its group. A person does not press Ctrl-C twice so fast. */
const oneRequestMs = 300;

export function stopSignal({ process, now, leaveAtOnce }: StopOptions): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let askedAt: number | null = null;
    const onSignal = (signal: NodeJS.Signals) => {
      if (askedAt === null) {
        askedAt = now();
        resolve(signal);
      } else if (now() - askedAt >= oneRequestMs) leaveAtOnce();
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
}
