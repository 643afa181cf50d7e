/**
 * Statements that are sent as one batch, with conditions that can refuse all of it.
 *
 * Nothing can be looked at between the statements of a batch, so the conditions are in them. A guard is a statement that
 * writes NULL into a column that takes none if its condition does not hold: the server stops there and rolls everything
 * back, and the number of the statement tells which condition it was.
 */
import type { Statement, Value } from "./driver.js";

export class StatementPlan<Refusal> {
  readonly statements: Statement[] = [];
  readonly #refusals = new Map<number, Refusal>();

  /** Gives back the number of the statement, by which its result is found. */
  add(sql: string, ...args: readonly unknown[]): number {
    return this.statements.push({ sql, args: args as readonly Value[] }) - 1;
  }

  /** A statement that fails if its condition does not hold; then the whole plan comes to `refusal`. */
  addGuard(refusal: Refusal, sql: string, ...args: readonly unknown[]): void {
    this.#refusals.set(this.add(sql, ...args), refusal);
  }

  refusalAt(index: number): Refusal | null {
    return this.#refusals.get(index) ?? null;
  }
}

/** Nothing is written, and the guard passes, if the condition holds. */
export const guardStatement = (condition: string): string =>
  `INSERT INTO pawl_migrations (version, name, at) SELECT 0, NULL, 0 WHERE NOT (${condition})`;

/** The worker's fence, as a condition with two values: id and epoch. */
export const holdsFence = "EXISTS (SELECT 1 FROM pawl_workers WHERE id = ? AND epoch = ? AND live = 1)";
