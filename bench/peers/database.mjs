// A database for one contender's turn, on the server that all share.

import { randomBytes } from "node:crypto";
import pg from "pg";

const server = process.env.PAWL_TEST_POSTGRES_URL ?? "postgres://postgres@127.0.0.1:5432/postgres";

export async function makeDatabase() {
  const name = `pawl_peers_${randomBytes(4).toString("hex")}`;
  await asAdmin(`CREATE DATABASE ${name}`);
  return {
    url: Object.assign(new URL(server), { pathname: `/${name}` }).href,
    drop: () => asAdmin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function asAdmin(sql) {
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  try {
    await admin.query(sql);
  } finally {
    await admin.end();
  }
}
