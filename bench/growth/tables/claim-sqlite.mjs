// SQLite has no counters that a program could read, but it explains how it would execute a statement. Every statement
// of a claim is intercepted and explained: each must search an index, and none may scan a table.

import { claimFully } from "./claim-cost.mjs";

export const claims = 1;

export async function watchClaims({ store, database, request }) {
  const statements = await overhear(() => claimFully(store, request));
  const plan = new Set();
  for (const sql of statements) {
    for (const { detail } of await database.query(`EXPLAIN QUERY PLAN ${sql}`, placeholders(sql)))
      if (/\b(SCAN|SEARCH)\b/.test(detail)) plan.add(detail);
  }
  const scans = [...plan].filter((detail) => /SCAN (?!CONSTANT ROW|r VIRTUAL TABLE|\(subquery)/.test(detail));
  return { plan: [...plan].sort(), scans };
}

const placeholders = (sql) => Array.from(sql.matchAll(/\?/g), () => null);

/** The store's connection is new, so it prepares what it needs. */
async function overhear(claim) {
  const { loadDriver } = await import("../../../dist/store/sqlite/driver.js");
  const { prototype } = (await loadDriver()).Database;
  const { prepare } = prototype;
  const heard = new Set();
  prototype.prepare = function (sql, ...rest) {
    if (/\b(SELECT|UPDATE)\b/.test(sql)) heard.add(sql);
    return prepare.call(this, sql, ...rest);
  };
  try {
    await claim();
  } finally {
    prototype.prepare = prepare;
  }
  return heard;
}
