/** Expires the lease of a killed process at once. With a short lease a busy machine would lose live workers; a long one would take its time. */
import { type AnyStoreKind, openStore } from "./databases.js";
import { rawSql } from "./raw-sql.js";

/**
 * How long ago the lease has run out. Workers that have been dead for a day are deleted; one that goes on would then register under the
 * number of its earlier epoch, and what it had sent before would be taken for what it sends now.
 */
const overdueMs = 60_000;

/**
 * Moves the last heartbeat of the process's workers into the past and sends one heartbeat of another worker, which marks them
 * dead and frees their runs, as after any lease that has run out.
 */
export async function expireLeaseOf(pid: number, kind: AnyStoreKind, url: string): Promise<void> {
  const sql = await rawSql(url);
  await sql.query(
    `UPDATE pawl_workers SET heartbeat_at = heartbeat_at - lease_ms - ${overdueMs} WHERE pid = ${pid} AND live`,
  );
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
