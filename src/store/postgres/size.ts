/** The sizes of tables in PostgreSQL, from its catalog. */
import type { SizeStatements } from "../sql/dialect.js";
import { quoteName, type Tables } from "./tables.js";

export const postgresSizes = ({ schema }: Tables): SizeStatements => ({
  engineOf: () => "PostgreSQL",
  selectDatabase: "SELECT current_setting('server_version') AS version, NULL AS bytes, NULL AS free_bytes",
  // Of a table that has never been analyzed, reltuples is -1, before PostgreSQL 14 it is 0.
  selectTables:
    () => `SELECT c.relname::text AS name, c.reltuples::bigint AS row_estimate, pg_table_size(c.oid) AS bytes, pg_indexes_size(c.oid) AS index_bytes
    FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = to_regnamespace(${quoteText(quoteName(schema))}) AND c.relname LIKE 'pawl\\_%'`,
});

const quoteText = (text: string): string => `'${text.replaceAll("'", "''")}'`;
