/** The two clocks: the store's, which a test may replace, and the server's, which leases always use. */
import { InvalidInputError } from "../../core/errors/errors.js";

/**
 * The server's time in epoch milliseconds at the start of the statement. UNIX_TIMESTAMP(NOW(3)) would depend on the
 * session's time zone, and is an hour off when clocks are set back.
 */
export const serverNow = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000)";

export type Clock = (() => number) | undefined;

/** The store's time as an SQL expression. */
export function nowExpression(clock: Clock): string {
  if (clock === undefined) return serverNow;
  const now = clock();
  if (!Number.isSafeInteger(now)) throw new InvalidInputError(`The clock returned ${now}, which is not an integer.`);
  return String(now);
}
