/** Adapts the library `libsql` to the driver interface of the SQLite store. */
import { createDriverError } from "../shared/missing-driver.js";
import type { SqliteDriver } from "../sqlite/driver.js";
import { LibsqlDatabase, type NativeDatabase } from "./database.js";

type NativeDatabaseClass = new (file: string) => NativeDatabase;

export async function loadLibsql(): Promise<SqliteDriver> {
  const Database = await importDatabase();
  return {
    name: "libsql",
    engine: "libSQL",
    Database,
    open: (file) => new LibsqlDatabase(openNative(Database, file)),
    adopt: (database) => new LibsqlDatabase(database as NativeDatabase),
  };
}

async function importDatabase(): Promise<NativeDatabaseClass> {
  try {
    const module: { default: unknown } = await import("libsql");
    return module.default as NativeDatabaseClass;
  } catch (cause) {
    throw createDriverError(
      "libsql",
      "libSQL needs the package libsql, which is not installed; run: npm install libsql",
      cause,
    );
  }
}

/**
 * The library reports SQLite's code of an opening error only in the message (`… local database pawl.db: 14")`), so this
 * function parses the code from it and adds it to the error.
 */
function openNative(Database: NativeDatabaseClass, file: string): NativeDatabase {
  try {
    return new Database(file);
  } catch (error) {
    const code = error instanceof Error ? /: (\d+)"\)$/.exec(error.message)?.[1] : undefined;
    throw code === undefined ? error : Object.assign(error as Error, { rawCode: Number(code) });
  }
}
