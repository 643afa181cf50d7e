/** The lease of a killed process ends at once: a test needs neither a short lease, which a busy machine breaks, nor the time of a long one. */
import { type AnyStoreKind, openStore } from "./databases.js";
import { rawSql } from "./raw-sql.js";

/**
 * Moves the last heartbeat of the workers of a killed process far into the past, and lets another worker, which lives only
 * for this, find them dead. What follows is what follows any lease that has run out.
 */
export async function expireLeaseOf(pid: number, kind: AnyStoreKind, url: string): Promise<void> {
  const sql = await rawSql(url);
  await sql.query(`UPDATE pawl_workers SET heartbeat_at = 0 WHERE pid = ${pid}`);
  await sql.close();
  const store = await openStore(kind, url);
  try {
    const info = { name: "reaper", host: "test", pid: process.pid, port: null, routes: [], leaseMs: 600_000 };
    const fence = await store.registerWorker({ id: `reaper-of-${pid}`, ...info });
    await store.heartbeat(fence);
    await store.deregisterWorker(fence);
  } finally {
    await store.close();
  }
}
