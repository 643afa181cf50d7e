/** The sizes of tables in MySQL and MariaDB, from the statistics of the server. MySQL refreshes them once a day. */
import type { SizeStatements } from "../sql/dialect.js";
import { engineOf } from "./capabilities.js";

export const mysqlSizes: SizeStatements = {
  engineOf,
  selectDatabase: "SELECT VERSION() AS version, NULL AS bytes, NULL AS free_bytes",
  selectTables:
    () => `SELECT CAST(t.table_name AS CHAR) AS name, t.table_rows AS row_estimate, t.data_length AS bytes, t.index_length AS index_bytes
    FROM information_schema.tables t WHERE t.table_schema = DATABASE() AND t.table_name LIKE 'pawl\\_%'`,
};
