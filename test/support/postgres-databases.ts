/** Databases on the PostgreSQL server of the tests. */
import { randomBytes } from "node:crypto";
import pg from "pg";
import { giveBack, mayKeep, type PooledDatabase, register, takeFree, unregister } from "./database-pool.js";

/** @param migrate makes the tables in the database of this URL; without it the database has none */
export async function takePostgresDatabase(
  server: string,
  migrate: ((url: string) => Promise<void>) | null,
): Promise<PooledDatabase> {
  const withTables = migrate === null ? undefined : takeFree(server, true);
  if (withTables !== undefined) return withTables;
  const { name } = takeFree(server, false) ?? (await create(server));
  if (migrate === null) return { name, fingerprint: null };
  const url = databaseUrl(server, name);
  await migrate(url);
  return { name, fingerprint: await onPostgres(url, fingerprintOf) };
}

async function create(server: string): Promise<PooledDatabase> {
  const name = `pawl_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  register(server, name);
  await onPostgres(server, (client) => client.query(`CREATE DATABASE ${name}`));
  return { name, fingerprint: null };
}

/** The database is emptied for another test; dropped, if something still uses it or was set for the database as a whole. */
export async function returnPostgresDatabase(server: string, database: PooledDatabase): Promise<void> {
  const emptied = mayKeep() ? await empty(server, database) : null;
  if (emptied === null) await dropPostgresDatabase(server, database.name);
  else giveBack(server, emptied);
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

function databaseUrl(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
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

/** Whatever changes an object of a schema writes its row in these catalogues anew, and the row gets the transaction's number. */
const fingerprint = `
  WITH own AS (SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'),
  versions AS (
    SELECT 'schema' AS kind, oid, xmin FROM pg_namespace WHERE oid IN (SELECT oid FROM own)
    UNION ALL SELECT 'relation', oid, xmin FROM pg_class WHERE relnamespace IN (SELECT oid FROM own)
    UNION ALL SELECT 'column', attrelid, pg_attribute.xmin FROM pg_attribute
      JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace IN (SELECT oid FROM own)
    UNION ALL SELECT 'function', oid, xmin FROM pg_proc WHERE pronamespace IN (SELECT oid FROM own)
    UNION ALL SELECT 'type', oid, xmin FROM pg_type WHERE typnamespace IN (SELECT oid FROM own)
    UNION ALL SELECT 'constraint', oid, xmin FROM pg_constraint WHERE connamespace IN (SELECT oid FROM own)
    UNION ALL SELECT 'trigger', pg_trigger.oid, pg_trigger.xmin FROM pg_trigger
      JOIN pg_class ON pg_class.oid = tgrelid WHERE relnamespace IN (SELECT oid FROM own)
    UNION ALL SELECT 'rule', pg_rewrite.oid, pg_rewrite.xmin FROM pg_rewrite
      JOIN pg_class ON pg_class.oid = ev_class WHERE relnamespace IN (SELECT oid FROM own)
    UNION ALL SELECT 'extension', oid, xmin FROM pg_extension)
  SELECT md5(string_agg(kind || oid || ':' || xmin, ',' ORDER BY kind, oid, xmin::text)) AS text FROM versions`;

/** The one table whose rows are kept. A test may have written that a newer Pawl has migrated the database. */
const migrations = "SELECT json_agg(m ORDER BY version)::text AS text FROM public.pawl_migrations m";

async function fingerprintOf(client: pg.Client): Promise<string> {
  const text = async (sql: string) => (await client.query<{ text: string }>(sql)).rows[0]?.text ?? "";
  return `${await text(fingerprint)} ${await text(migrations)}`;
}

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

const deleteRows = `
  DO $$
  DECLARE one record;
  BEGIN
    FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'pawl_migrations' LOOP
      EXECUTE format('DELETE FROM %I', one.tablename);
    END LOOP;
    FOR one IN SELECT sequencename, start_value FROM pg_sequences WHERE schemaname = 'public' LOOP
      PERFORM setval(one.sequencename::regclass, one.start_value, false);
    END LOOP;
  END $$`;

/** Null if the database cannot be used again. */
async function empty(server: string, { name, fingerprint: before }: PooledDatabase): Promise<PooledDatabase | null> {
  try {
    return await onPostgres(databaseUrl(server, name), async (client) => {
      const number = async (sql: string) => Number((await client.query(sql)).rows[0]?.n);
      // A session ends on the server a moment after its client has closed it.
      for (let looks = 1; (await number(otherSessions)) > 0; looks += 1) {
        if (looks === 5) return null;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      if ((await number(settings)) > 0) return null;
      if (before !== null && (await fingerprintOf(client).catch(() => null)) === before) {
        await client.query(deleteRows);
        return { name, fingerprint: before };
      }
      await client.query(dropSchemas);
      return { name, fingerprint: null };
    });
  } catch {
    // For instance, the test has dropped it, or another session holds a lock on its tables.
    return null;
  }
}
