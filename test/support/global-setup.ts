/** Before all test files, and after them: what their processes kept for each other is removed. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { registered } from "./database-pool.js";
import { dropMysqlDatabase } from "./mysql-databases.js";
import { dropPostgresDatabase } from "./postgres-databases.js";

export default function setUp(): (() => Promise<void>) | undefined {
  // Vitest calls it for each project. The first one makes the folder and removes it, after the last project.
  if (process.env.PAWL_TEST_DATABASES !== undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "pawl-databases-"));
  process.env.PAWL_TEST_DATABASES = folder;
  return async () => {
    for (const { name, server } of registered())
      await (server.startsWith("mysql:") ? dropMysqlDatabase : dropPostgresDatabase)(server, name);
    rmSync(folder, { recursive: true, force: true });
    delete process.env.PAWL_TEST_DATABASES;
  };
}
