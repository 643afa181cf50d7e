/**
 * Databases on the servers of the tests that were returned, for the next test of any process. To create one, to make the tables and to
 * drop it again takes a server as much as many tests do: so a database that still has the tables as a migration has made them is
 * returned with these, and only their rows are deleted.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface PooledDatabase {
  readonly name: string;
  /** What its schema looked like after the migration; null while it has no tables. */
  readonly fingerprint: string | null;
}

/** The folder of the pool, which the set-up of the tests has made. Without it every database is dropped when it is returned. */
const folderVariable = "PAWL_TEST_DATABASES";
const folder = () => process.env[folderVariable];

/** Whether databases of this server are kept. PgBouncer has sessions of its own to them, which would be in the way of the next test. */
export const mayKeep = (): boolean => folder() !== undefined && process.env.PAWL_TEST_PGBOUNCER === undefined;

/** Every database that exists, with the URL of its server. The set-up of the tests drops what is left at the end. */
export function register(server: string, name: string): void {
  if (folder() !== undefined) writeFileSync(join(folder() as string, name), server);
}

export function unregister(name: string): void {
  if (folder() !== undefined) rmSync(join(folder() as string, name), { force: true });
}

export function registered(): { readonly name: string; readonly server: string }[] {
  const path = folder() as string;
  const names = readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [entry.name] : []));
  return names.map((name) => ({ name, server: readFileSync(join(path, name), "utf8") }));
}

const freeFolder = (server: string, hasTables: boolean) =>
  join(folder() as string, `free-${encodeURIComponent(new URL(server).host)}-${hasTables ? "with-tables" : "empty"}`);

/** Takes a database that no test uses, if there is one. */
export function takeFree(server: string, hasTables: boolean): PooledDatabase | undefined {
  if (!mayKeep()) return undefined;
  const path = freeFolder(server, hasTables);
  for (const name of list(path)) {
    try {
      const fingerprint = readFileSync(join(path, name), "utf8");
      // Of several processes that want it, only one can remove the file.
      unlinkSync(join(path, name));
      return { name, fingerprint: hasTables ? fingerprint : null };
    } catch {
      // Another process was faster.
    }
  }
  return undefined;
}

export function giveBack(server: string, { name, fingerprint }: PooledDatabase): void {
  const path = freeFolder(server, fingerprint !== null);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, name), fingerprint ?? "");
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
