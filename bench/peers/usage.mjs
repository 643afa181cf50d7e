// What a contender uses besides time: CPU of its server, statements, writing transactions, bytes of the server's log.

import { readFileSync } from "node:fs";

const usPerTick = 10_000;

/** Microseconds of CPU that a process has used in all its threads; undefined where the system does not report it. */
function cpuUs(pid) {
  try {
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th field after it.
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * usPerTick;
  } catch {
    return undefined;
  }
}

/**
 * For a database on PostgreSQL: the CPU of its backends and, for the whole server, the bytes of its log and the
 * transactions that wrote something (those get a number, counted immediately, while pg_stat_database lags a second
 * behind).
 */
export async function postgresUsage(meter) {
  const { rows } = await meter.query(`SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS "logBytes",
    pg_snapshot_xmax(pg_current_snapshot())::text::float8 AS transactions,
    (SELECT array_agg(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend') AS pids`);
  const { pids, ...figures } = rows[0];
  return { ...figures, cpu: new Map((pids ?? []).map((pid) => [pid, cpuUs(pid)])) };
}

/** For a server that is one process. */
export const processUsage = async (pid) => ({ cpu: new Map([[pid, cpuUs(pid)]]) });

/** Runs `work` and returns its milliseconds and its total cost. Figures that cannot be measured are left out. */
export async function measure(contender, work) {
  const before = await contender.usage();
  const statements = contender.statements?.();
  const cpu = process.cpuUsage();
  const beganAt = performance.now();
  await work();
  const ms = performance.now() - beganAt;
  const { user, system } = process.cpuUsage(cpu);
  const sent = contender.statements?.() - statements;
  const after = await contender.usage();
  const cost = {
    nodeUs: user + system,
    serverUs: cpuBetween(before.cpu, after.cpu),
    statements: sent,
    transactions: after.transactions - before.transactions,
    logBytes: after.logBytes - before.logBytes,
  };
  return { ms, cost: Object.fromEntries(Object.entries(cost).filter(([, value]) => Number.isFinite(value))) };
}

/** A process that did not exist before has done all its work in between. */
function cpuBetween(before, after) {
  let us = 0;
  for (const [pid, time] of after) us += time - (before.get(pid) ?? 0);
  return us;
}
