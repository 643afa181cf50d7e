/** The shop's own table of payments. A row that is written in the transaction of a step exists exactly once. */
export interface Entry {
  readonly order: string;
  readonly cents: number;
}

export interface Books {
  enter(tx: unknown, entry: Entry): Promise<void>;
}

/** What a step's transaction on PostgreSQL, MySQL and SQLite has in common. */
interface SqlTransaction {
  query(sql: string, values: unknown[]): Promise<unknown>;
}

export const createTable = "CREATE TABLE payments (order_id VARCHAR(100) NOT NULL, cents INTEGER NOT NULL)";

/** `placeholders` as the database writes them: "$1, $2" or "?, ?". */
export const sqlBooks = (placeholders: string): Books => ({
  async enter(tx, { order, cents }) {
    const insert = `INSERT INTO payments (order_id, cents) VALUES (${placeholders})`;
    await (tx as SqlTransaction).query(insert, [order, cents]);
  },
});
