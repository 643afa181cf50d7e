/** The books of a test: on the database under test, or, where there is no SQL, a map. */
import { openStore, type StoreKind } from "../../test/stores/harness.js";
import { type Books, createTable, type Entry, sqlBooks } from "./books.js";

export interface TestBooks extends Books {
  open(url: string): Promise<void>;
  clear(): Promise<void>;
  /** The smallest amounts first. */
  entries(): Promise<Entry[]>;
  close(): Promise<void>;
}

export const testBooks = (kind: StoreKind): TestBooks => (kind === "memory" ? booksInMemory() : booksInSql(kind));

/** A map does not roll back; an entry that is made again replaces the first. */
function booksInMemory(): TestBooks {
  const entries = new Map<string, Entry>();
  return {
    open: async () => {},
    enter: async (_tx, entry) => void entries.set(`${entry.order} ${entry.cents}`, entry),
    clear: async () => entries.clear(),
    entries: async () => [...entries.values()].sort((a, b) => a.cents - b.cents),
    close: async () => {},
  };
}

interface Row {
  readonly order_id: string;
  readonly cents: number | string;
}

function booksInSql(kind: StoreKind): TestBooks {
  let store: Awaited<ReturnType<typeof openStore>>;
  /** Through a transaction of the store's own, so that the test needs no driver. */
  const execute = async (sql: string): Promise<readonly Row[]> => {
    const transaction = await store.begin();
    const answer = await (transaction.handle as { query(sql: string, values: unknown[]): Promise<unknown> }).query(
      sql,
      [],
    );
    await transaction.commit({ fence: null, transitions: [], starts: [] });
    return rowsOf(answer);
  };
  return {
    ...sqlBooks(kind === "postgres" ? "$1, $2" : "?, ?"),
    open: async (url) => {
      store = await openStore(kind, url);
      await store.migrate();
      await execute(createTable);
    },
    clear: async () => void (await execute("DELETE FROM payments")),
    entries: async () => {
      const rows = await execute("SELECT order_id, cents FROM payments ORDER BY cents");
      return rows.map(({ order_id, cents }) => ({ order: order_id, cents: Number(cents) }));
    },
    close: () => store.close(),
  };
}

/** `pg` answers `{ rows }`, `mysql2` `[rows, fields]`, SQLite the rows. */
function rowsOf(answer: unknown): readonly Row[] {
  const { rows } = answer as { rows?: readonly Row[] };
  if (rows !== undefined) return rows;
  const [first] = answer as readonly unknown[];
  return (Array.isArray(first) ? first : answer) as readonly Row[];
}
