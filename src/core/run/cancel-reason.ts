/** Why a run is canceled: a sentence for people and, if Pawl itself has canceled it, a code for programs. */
import type { Failure } from "../encoding/error-record.js";

/** The code of a run that was canceled because it had not begun by its start deadline. */
export const expiredCode = "EXPIRED";

export const expiredReason = (startBy: number): string =>
  `It had not begun by ${new Date(startBy).toISOString()}, as its startBy demands`;

/** The code of a run that was canceled because a limit with `onFull: "skip"` was full. */
export const skippedCode = "LIMIT_SKIPPED";
/** The code of a run that was canceled for a newer one, because a limit with `onFull: "cancelOldest"` was full. */
export const supersededCode = "LIMIT_SUPERSEDED";

/** The data of an event about a cancel. Fields that are not known are left out. */
export function cancelData(
  reason: string | null,
  code: string | null | undefined,
): { readonly reason?: string; readonly code?: string } {
  return { ...(reason === null ? {} : { reason }), ...(code == null ? {} : { code }) };
}

/** The error in the row of a canceled run; null if no reason was given. */
export function cancelFailure(reason: string | null, code: string | null | undefined): Failure | null {
  return reason === null ? null : { name: "RunCanceledError", message: reason, ...(code == null ? {} : { code }) };
}
