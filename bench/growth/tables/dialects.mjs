// SQL that differs between the databases when their tables are filled: series of numbers, ids like the engine's
// (version 7, in time order), and the maintenance that a server does by itself some time after so many writes.

const postgres = {
  beforeFill: [],
  numbers: (from, to) => `generate_series(${from}::bigint, ${to}::bigint) AS s(n)`,
  // The bits after the time would be random; here they are a hash of the number, the same in every table.
  id: (ms, n) =>
    `(lpad(to_hex(${ms}), 12, '0') || '7' || substr(md5(${n}::text), 1, 3) || '8' || substr(md5(${n}::text), 4, 15))::uuid`,
  afterFill: ["VACUUM (ANALYZE)", "CHECKPOINT"],
  betweenRounds: ["VACUUM pawl_tasks", "VACUUM pawl_workers", "CHECKPOINT"],
  bytes: "SELECT pg_database_size(current_database()) AS bytes",
};

const mysql = {
  // Neither database has a series of numbers without a change of the session's settings, and generating one for each
  // statement would take longer than the rest.
  beforeFill: [
    "CREATE TABLE bench_digits AS SELECT 0 AS d",
    ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((d) => `INSERT INTO bench_digits VALUES (${d})`),
    "CREATE TABLE bench_numbers (n INT PRIMARY KEY)",
    `INSERT INTO bench_numbers SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d
      FROM bench_digits a, bench_digits b, bench_digits c, bench_digits d, bench_digits e`,
  ],
  numbers: (from, to) => `(SELECT ${from} + n AS n FROM bench_numbers WHERE n <= ${to - from} ORDER BY n) s`,
  id: (ms, n) =>
    `LOWER(CONCAT(LPAD(HEX((${ms}) DIV 65536), 8, '0'), '-', LPAD(HEX((${ms}) % 65536), 4, '0'), '-7', ` +
    `SUBSTR(MD5(${n}), 1, 3), '-8', SUBSTR(MD5(${n}), 4, 3), '-', SUBSTR(MD5(${n}), 7, 12)))`,
  afterFill: [
    "ANALYZE TABLE pawl_runs, pawl_tasks, pawl_events",
    // Waits until the pages are on disk.
    "FLUSH TABLES pawl_runs, pawl_tasks, pawl_events FOR EXPORT",
    "UNLOCK TABLES",
  ],
  betweenRounds: [],
  bytes:
    "SELECT sum(data_length + index_length) AS bytes FROM information_schema.tables WHERE table_schema = database()",
};

const sqlite = {
  beforeFill: [],
  numbers: (from, to) =>
    `(WITH RECURSIVE every(n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM every WHERE n < ${to}) SELECT n FROM every) s`,
  id: (ms, n) =>
    `printf('%08x-%04x-7%03x-8%03x-%012x', (${ms}) >> 16, (${ms}) & 65535, (${n} * 40503 >> 4) & 4095, ` +
    `(${n} * 2654435761 >> 8) & 4095, (${n} * 2862933555777) & 281474976710655)`,
  afterFill: ["PRAGMA wal_checkpoint(TRUNCATE)"],
  betweenRounds: ["PRAGMA wal_checkpoint(TRUNCATE)"],
  bytes: "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()",
};

export const dialects = { postgres, mysql, sqlite };
