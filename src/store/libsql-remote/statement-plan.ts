/**
 * Statements that are sent as one batch, with guards that can refuse the whole batch.
 *
 * The store cannot read a result between the statements of a batch, so conditions are part of the statements. A guard
 * is a statement that writes NULL into a NOT NULL column if its condition is false: the server stops there and rolls
 * the batch back, and the index of the failed statement says which guard it was.
 */
import type { Statement, Value } from "./driver.js";

export class StatementPlan<Refusal> {
  readonly statements: Statement[] = [];
  readonly #refusals = new Map<number, Refusal>();

  /** Returns the index of the statement, which is also the index of its result. */
  add(sql: string, ...args: readonly unknown[]): number {
    return this.statements.push({ sql, args: args as readonly Value[] }) - 1;
  }

  /** Adds a statement that fails if its condition is false; then `refusal` is the result of the whole plan. */
  addGuard(refusal: Refusal, sql: string, ...args: readonly unknown[]): void {
    this.#refusals.set(this.add(sql, ...args), refusal);
  }

  refusalAt(index: number): Refusal | null {
    return this.#refusals.get(index) ?? null;
  }
}

/** A guard without effects: if the condition is true, it writes nothing. */
export const guardStatement = (condition: string): string =>
  `INSERT INTO pawl_migrations (version, name, at) SELECT 0, NULL, 0 WHERE NOT (${condition})`;

/** The condition that a worker's fence is valid. Its values are the worker's id and epoch. */
export const holdsFence = "EXISTS (SELECT 1 FROM pawl_workers WHERE id = ? AND epoch = ? AND live = 1)";
