/**
 * Databases on the PostgreSQL server of the tests. To create and to drop one takes the server as much as many tests do, so
 * a process empties the databases that its tests return and gives them to its next tests.
 */
import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";

/** The folder with a file for each database that exists, with the URL of its server. The set-up of the tests drops what is left at the end. */
const registryVariable = "PAWL_TEST_DATABASES";

/** Empty databases that no test uses. */
const free: string[] = [];

/** The name of an empty database. */
export async function takePostgresDatabase(server: string): Promise<string> {
  const kept = free.pop();
  if (kept !== undefined) return kept;
  const name = `pawl_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  register(server, name);
  await onPostgres(server, (client) => client.query(`CREATE DATABASE ${name}`));
  return name;
}

/** The database is emptied for another test; dropped, if something still uses it or was set for the database as a whole. */
export async function returnPostgresDatabase(server: string, name: string): Promise<void> {
  // PgBouncer has sessions of its own, and without a set-up there is nothing that drops the database at the end.
  const mayKeep = process.env.PAWL_TEST_PGBOUNCER === undefined && process.env[registryVariable] !== undefined;
  if (mayKeep && (await emptied(server, name))) free.push(name);
  else await dropPostgresDatabase(server, name);
}

export async function dropPostgresDatabase(server: string, name: string): Promise<void> {
  await onPostgres(server, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
  unregister(name);
}

export async function onPostgres<Result>(server: string, work: (client: pg.Client) => Promise<Result>) {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function register(server: string, name: string): void {
  const folder = process.env[registryVariable];
  if (folder !== undefined) writeFileSync(join(folder, name), server);
}

function unregister(name: string): void {
  const folder = process.env[registryVariable];
  if (folder !== undefined) rmSync(join(folder, name), { force: true });
}

/** Sessions that use it, apart from this one. */
const otherSessions = `
  SELECT count(*)::int AS n FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`;

/** What outlasts the schemas: rights and settings of the database, and rights on objects that are yet to come. */
const settings = `
  SELECT (SELECT count(*) FROM pg_db_role_setting JOIN pg_database ON oid = setdatabase WHERE datname = current_database())
    + (SELECT count(*) FROM pg_default_acl)
    + (SELECT count(*) FROM pg_database WHERE datname = current_database() AND datacl IS NOT NULL) AS n`;

const dropSchemas = `
  DO $$
  DECLARE schema text;
  BEGIN
    FOR schema IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
      EXECUTE format('DROP SCHEMA %I CASCADE', schema);
    END LOOP;
    CREATE SCHEMA public;
    -- As in a new database.
    IF current_setting('server_version_num')::int >= 150000 THEN
      ALTER SCHEMA public OWNER TO pg_database_owner;
      GRANT USAGE ON SCHEMA public TO PUBLIC;
    ELSE
      GRANT ALL ON SCHEMA public TO PUBLIC;
    END IF;
  END $$`;

async function emptied(server: string, name: string): Promise<boolean> {
  const url = new URL(server);
  url.pathname = `/${name}`;
  try {
    return await onPostgres(url.href, async (client) => {
      const number = async (sql: string) => Number((await client.query(sql)).rows[0]?.n);
      // A session ends on the server a moment after its client has closed it.
      for (let looks = 1; (await number(otherSessions)) > 0; looks += 1) {
        if (looks === 5) return false;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      if ((await number(settings)) > 0) return false;
      await client.query(dropSchemas);
      return true;
    });
  } catch {
    // For instance, the test has dropped it, or another session holds a lock on its tables.
    return false;
  }
}
