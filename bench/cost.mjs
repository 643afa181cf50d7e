// What a piece of work costs besides time: CPU here and in the server, statements, rows, bytes of the server's log.

import { readFileSync } from "node:fs";

/**
 * Does `work` and gives its milliseconds and what it cost, all for the whole of it. What the store cannot tell is left
 * out. The bytes are those of the whole server: whatever else it does is in them.
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

/** The CPU time of these threads of a server on this machine, by thread id; undefined where the system does not tell. */
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

/** Of the threads that were there before: a new connection may have been given a thread with a past. */
export function cpuBetween(before, after) {
  let us = 0;
  for (const [id, time] of after) us += time - (before?.get(id) ?? time);
  return us;
}
