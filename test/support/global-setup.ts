/** Before all test files, and after them: what their processes kept for each other is removed. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dropPostgresDatabase } from "./postgres-databases.js";

export default function setUp(): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-databases-"));
  process.env.PAWL_TEST_DATABASES = folder;
  return async () => {
    for (const name of readdirSync(folder)) await dropPostgresDatabase(readFileSync(join(folder, name), "utf8"), name);
    rmSync(folder, { recursive: true, force: true });
  };
}
