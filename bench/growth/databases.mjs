// Tracks open databases, so that none is left behind when the benchmark is interrupted: they may be large.

import { openDatabase as open } from "../stores/open.mjs";

const opened = new Set();

export async function openDatabase(storeName) {
  const database = await open(storeName);
  opened.add(database);
  return {
    ...database,
    close: async () => {
      if (opened.delete(database)) await database.close();
    },
  };
}

/** The display name of the database, with its version. */
export async function labelOf(storeName) {
  const database = await openDatabase(storeName);
  await database.close();
  return database.label;
}

for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
  process.once(signal, async () => {
    for (const database of opened) await database.close().catch((error) => console.error(error.message));
    process.exit(code);
  });
}
