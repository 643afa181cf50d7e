/** Waits for the signal to stop. A second signal exits at once, and other workers take over the runs. */

/** The members of `process` that are used here. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

export interface StopOptions {
  readonly process: SignalSource;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly exitNow: () => void;
}

/** `timeout` and shells may send one signal to the process and one to its group. No user presses Ctrl-C twice that fast. */
const duplicateSignalMs = 300;

export function waitForStopSignal({ process, now, exitNow }: StopOptions): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstSignalAt: number | null = null;
    const onSignal = (signal: NodeJS.Signals) => {
      if (firstSignalAt === null) {
        firstSignalAt = now();
        resolve(signal);
      } else if (now() - firstSignalAt >= duplicateSignalMs) exitNow();
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
}
