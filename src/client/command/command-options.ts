/** The options that all commands to runs have: who gives the command, why, and what the caller has seen of the run. */
import { InvalidInputError } from "../../core/errors/errors.js";
import { checkName, checkReason } from "../../core/naming/names.js";
import type { CommandAudit } from "../../core/run/stored-schema.js";

/** Options of the commands to a run. */
export interface CommandOptions {
  /** Who gives the command, such as the name of a user. The log of the run records it. */
  readonly by?: string | undefined;
  /** Why the command is given. The log of the run records it. */
  readonly reason?: string | undefined;
  /**
   * Throws a RunChangedError if the log of the run does not end with this event any more, because the caller has decided
   * from what it saw then. While a worker executes the run, this is checked when the command is sent, not when it takes
   * effect.
   */
  readonly ifLastEvent?: number | undefined;
}

/** The names of `CommandOptions`, for `checkOptions`. */
export const commandOptionNames = ["by", "reason", "ifLastEvent"] as const satisfies (keyof CommandOptions)[];

/** Returns the field `audit` of a command, or no field if the caller has given neither a name nor a reason. */
export function auditField({ by, reason }: CommandOptions): { readonly audit?: CommandAudit } {
  const checkedReason = checkReason(reason);
  const audit = {
    ...(by === undefined ? {} : { by: checkName("user", by) }),
    ...(checkedReason === null ? {} : { reason: checkedReason }),
  };
  return Object.keys(audit).length === 0 ? {} : { audit };
}

/** The precondition of a command, for `RunCommands.send`; null if it has none. */
export function expectedLastEvent({ ifLastEvent }: CommandOptions): number | null {
  if (ifLastEvent === undefined) return null;
  if (Number.isInteger(ifLastEvent) && ifLastEvent >= 0) return ifLastEvent;
  throw new InvalidInputError(`ifLastEvent must be the number of an event, not ${String(ifLastEvent)}.`);
}
