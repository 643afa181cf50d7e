// What an operation costs besides time: CPU here and in the server, statements, rows, bytes of the server's log.

import { readFileSync } from "node:fs";

/**
 * Runs `work` and returns its milliseconds and its total cost. Figures that the store cannot report are left out. The
 * bytes are those of the whole server, including any other work that it does.
 */
export async function measureCost(database, work) {
  const before = await database.usage();
  const statements = database.statements();
  const cpu = process.cpuUsage();
  const beganAt = performance.now();
  await work();
  const ms = performance.now() - beganAt;
  const { user, system } = process.cpuUsage(cpu);
  const sent = database.statements() - statements;
  const after = await database.usage();
  return {
    ms,
    nodeUs: user + system,
    ...(after.cpuUs === undefined ? {} : { serverUs: cpuBetween(before.cpuUs, after.cpuUs) }),
    ...(after.eventRows === undefined ? {} : { statements: sent, eventRows: after.eventRows - before.eventRows }),
    ...(after.logBytes === undefined ? {} : { logBytes: after.logBytes - before.logBytes }),
  };
}

const perTickUs = 10_000;

/**
 * The CPU time of these threads of a server on this machine, by thread id; undefined where the system does not report
 * it.
 */
export function cpuOfThreads(ids) {
  const times = new Map();
  for (const id of ids) {
    try {
      // The name in parentheses may hold spaces; utime and stime are the 12th and 13th field after it.
      const fields = readFileSync(`/proc/${id}/task/${id}/stat`, "utf8").split(") ").at(-1).split(" ");
      times.set(id, (Number(fields[11]) + Number(fields[12])) * perTickUs);
    } catch {
      return undefined;
    }
  }
  return times;
}

/** Only for threads that existed before: a new connection may have been given a thread that has already used CPU. */
export function cpuBetween(before, after) {
  let us = 0;
  for (const [id, time] of after) us += time - (before?.get(id) ?? time);
  return us;
}
