/** Writes the classes in which tasks wait. */
import type { RunClass } from "../../../core/limits/lane.js";
import { taskState } from "../records.js";
import { buildStatement, type LimitsDialect, type ReadSteps, type SqlText } from "./dialect.js";

/**
 * A condition on the class `c`. The second half is for partial indexes: databases do not know that no lane has an empty id.
 *
 * @param lane SQL with the id of a lane
 */
export const isBlockedOn = (lane: string): string => `c.blocked_on = ${lane} AND c.blocked_on <> ''`;

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

/**
 * Returns statements that delete those of the classes that have no waiting run; the transaction has locked the classes. The lock
 * against starts comes in a statement before the one that looks for their tasks: a statement does not see what was committed
 * after it began.
 */
export function* deletesOfEmptyClasses(
  d: LimitsDialect,
  classes: readonly { readonly id: string }[],
): ReadSteps<readonly SqlText[]> {
  if (classes.length === 0) return [];
  const ids = [...new Set(classes.map(({ id }) => id))].sort();
  const hasNoTask = (of: string) =>
    `(SELECT 1 FROM ${d.tasksByRoute} WHERE t.state = ${taskState.ready} AND t.workflow = ${of}.id AND t.version = ${of}.version LIMIT 1) IS NULL`;
  const table = d.base.table("classes");
  const [rows = []] = yield [
    buildStatement(
      d.base,
      (bind) =>
        `SELECT c.id FROM ${table} c WHERE ${d.isOneOf("c.id", ids, bind)} AND ${hasNoTask("c")} ${d.lock.skip}`,
    ),
  ];
  const empty = rows.map((row) => row.id as string).sort();
  if (empty.length === 0) return [];
  return [
    buildStatement(
      d.base,
      (bind) => `DELETE FROM ${table} WHERE ${d.isOneOf("id", empty, bind)} AND ${hasNoTask(table)}`,
    ),
  ];
}
