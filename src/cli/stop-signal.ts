/** When a process is asked to end. Asked once more, it does so at once: its runs are taken over by others. */

/** The part of `process` that is used. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

export interface StopOptions {
  readonly process: SignalSource;
  /** Milliseconds, of a clock that only goes forward. */
  readonly now: () => number;
  readonly exitNow: () => void;
}

/** `timeout` and shells send one to the process and one to its group. A person does not press Ctrl-C twice so fast. */
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
