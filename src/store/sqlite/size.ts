/** The sizes of tables in SQLite and libSQL. */
import type { SizeStatements } from "../sql/dialect.js";

/**
 * The virtual table `dbstat` reads every page of the file, and in SQLite that blocks the process: 25 ms for 64 MB. The tables
 * of larger files have no sizes.
 */
const maxReadPages = 16_384;

const hasDbstat =
  "(SELECT count(*) FROM pragma_compile_options() o WHERE o.compile_options = 'ENABLE_DBSTAT_VTAB') AS has_dbstat";

const selectTables = `SELECT m.tbl_name AS name, NULL AS row_estimate,
    sum(CASE m.type WHEN 'table' THEN d.pgsize ELSE 0 END) AS bytes,
    sum(CASE m.type WHEN 'index' THEN d.pgsize ELSE 0 END) AS index_bytes
  FROM dbstat d JOIN sqlite_master m ON m.name = d.name WHERE d.aggregate = 1 GROUP BY m.tbl_name`;

export const sqliteSizes = (engine: string): SizeStatements => ({
  engineOf: () => engine,
  selectDatabase: `SELECT sqlite_version() AS version, c.page_count * s.page_size AS bytes, f.freelist_count * s.page_size AS free_bytes,
      c.page_count, ${hasDbstat} FROM pragma_page_count() c, pragma_page_size() s, pragma_freelist_count() f`,
  selectTables: ({ page_count, has_dbstat }) =>
    Number(has_dbstat) > 0 && Number(page_count) <= maxReadPages ? selectTables : null,
});
