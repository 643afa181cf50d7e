/** Describes the database for the people who look after it: what its tables contain, its migrations, and its checks. */
import type { Runtime } from "../../runtime/runtime.js";
import type { DatabaseSize, Store } from "../../store/contract/store.js";
import type { Check } from "./check.js";
import { checkDatabase } from "./doctor.js";

/** One of Pawl's tables. */
export interface TableInfo {
  /** The name of the table, without the prefix `pawl_`. */
  readonly name: string;
  /** The number of its rows. */
  readonly rows: number;
  /** Whether `rows` is exact, a lower bound ("capped"), or an estimate of the database. */
  readonly rowsAre: "exact" | "capped" | "estimated";
  /** Its size without its indexes, in bytes; null if the database does not tell. */
  readonly bytes: number | null;
  /** The size of its indexes, in bytes; null if the database does not tell. */
  readonly indexBytes: number | null;
}

/** The database, as `pawl.database()` returns it. */
export interface DatabaseInfo {
  /** Where the data is, without a password: "sqlite ./pawl.db". */
  readonly description: string;
  /** The product: "PostgreSQL". */
  readonly engine: string;
  /** The version of the product; null if it has none. */
  readonly version: string | null;
  /** The size of Pawl's tables and indexes, or of the file that contains them; null if the database does not tell. */
  readonly bytes: number | null;
  /** The part of the file that is free and will be used again; null if there is no such file. */
  readonly freeBytes: number | null;
  /** Pawl's tables. At most 10,000 rows of each are counted; larger numbers are estimates. */
  readonly tables: readonly TableInfo[];
  /** The migrations of the tables. */
  readonly migrations: {
    /** Those that have been applied. */
    readonly applied: readonly {
      /** The number of the migration; the highest is the version of the tables. */
      readonly version: number;
      /** What it is called. */
      readonly name: string;
      /** When it was applied. */
      readonly at: Date;
    }[];
    /** The numbers of those that have not been applied yet. */
    readonly pending: readonly number[];
  };
  /** How long ended runs are kept, in milliseconds, by the settings of this process; null: for ever. */
  readonly retentionMs: number | null;
  /** When a worker of this process next deletes what is older; null if this process has no such worker. */
  readonly nextHousekeepingAt: Date | null;
  /** What `pawl doctor` finds: connection, migrations, clocks, workers, runs and queues. */
  readonly checks: readonly Check[];
}

/** What only the process knows. */
type ProcessSettings = Pick<DatabaseInfo, "retentionMs" | "nextHousekeepingAt">;

const maxCounted = 10_000;

export async function readDatabase(store: Store, runtime: Runtime, settings: ProcessSettings): Promise<DatabaseInfo> {
  const size: DatabaseSize = await store.maintenance.size({ cap: maxCounted });
  const { engine, version, bytes, freeBytes, tables, migrations } = size;
  return {
    description: store.description,
    ...{ engine, version, bytes, freeBytes, tables },
    migrations: {
      applied: migrations.map(({ at, ...migration }) => ({ ...migration, at: new Date(at) })),
      // The check of the migrations tells why they cannot be read.
      pending: await store.pendingMigrations().catch(() => []),
    },
    ...settings,
    checks: await checkDatabase(store, runtime),
  };
}
