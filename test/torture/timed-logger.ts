/** Logs warnings and errors with their time, so that a log can be compared with the faults. */
const write = (level: string, args: readonly unknown[]) =>
  console.error(
    new Date().toISOString(),
    level,
    ...args.map((arg) => (arg instanceof Error ? (arg.stack ?? arg) : arg)),
  );

export const timedLogger = {
  debug: () => {},
  info: () => {},
  warn: (...args: unknown[]) => write("warn", args),
  error: (...args: unknown[]) => write("error", args),
};
