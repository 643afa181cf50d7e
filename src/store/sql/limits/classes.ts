/** Writes the classes in which tasks wait. */
import type { RunClass } from "../../../core/limits/lane.js";
import type { LimitsDialect, SqlText } from "./dialect.js";

/** New classes are open. One that exists stays as it is, but is locked, so that no admission deletes it meanwhile. */
export const insertOrLockClasses = (
  d: LimitsDialect,
  classes: readonly (RunClass & { readonly turn: number })[],
): SqlText =>
  d.insertOrLock(
    d.base.table("classes"),
    [
      ["id", "text"],
      ["route", "text"],
      ["version", "text"],
      ["lanes", "text"],
      ["turn", "number"],
      ["blocked_on", "text"],
    ],
    classes.map(({ id, route, version, lanes, turn }) => [id, route, version, JSON.stringify(lanes), turn, ""]),
    "id",
  );
