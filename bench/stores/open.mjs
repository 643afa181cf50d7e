// Opens a database of the benchmark's own for a store. Loaded on demand, because each store needs its driver.

const openers = {
  postgres: async () => (await import("./postgres.mjs")).openPostgres(),
  sqlite: async () => (await import("./sqlite.mjs")).openSqlite(),
  mysql: async () => (await import("./mysql.mjs")).openMysql(),
  memory: async () => (await import("./memory.mjs")).openMemory(),
};

export const openDatabase = (name) => openers[name]();
