/** The two clocks: the store's, which a test may replace, and the server's, which leases always use. */
import { InvalidInputError } from "../../core/errors/errors.js";

/**
 * Epoch milliseconds of the server, as of the statement's beginning. Not UNIX_TIMESTAMP(NOW(3)): that goes through the
 * session's time zone, and is an hour off while clocks are set back.
 */
export const serverNow = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000)";

export type Clock = (() => number) | undefined;

/** The store's now as an expression. */
export function nowExpression(clock: Clock): string {
  if (clock === undefined) return serverNow;
  const now = clock();
  if (!Number.isSafeInteger(now)) throw new InvalidInputError(`The clock says ${now}, which is not a whole number.`);
  return String(now);
}
