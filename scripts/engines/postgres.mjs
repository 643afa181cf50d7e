// PostgreSQL, as the test command needs to know it. The fields are described in ../databases.mjs and ../servers.mjs.

import { join } from "node:path";
import { beside, childFolders, pathFolders } from "../binaries.mjs";

export const postgres = {
  name: "postgres",
  label: "PostgreSQL",
  urlVariable: "PAWL_TEST_POSTGRES_URL",
  portVariable: "PAWL_TEST_POSTGRES_PORT",
  standardPort: 5432,
  users: ["postgres", process.env.USER, "root"],
  adminUser: "postgres",

  url: ({ user, port, database = "postgres" }) => `postgres://${user}@127.0.0.1:${port}/${database}`,

  async connect(url) {
    const { default: pg } = await import("pg");
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
    // A server that is killed under an idle connection emits an error event, which without a listener would be
    // uncaught.
    client.on("error", () => {});
    await client.connect();
    return {
      version: async () => (await client.query("SHOW server_version")).rows[0].server_version.split(" ")[0],
      // template0 has no other users, and allows an encoding other than the server's own.
      createDatabase: (name) => client.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`),
      dropDatabase: (name) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
      close: () => client.end(),
    };
  },

  accounts: ["postgres", "nobody"],
  packages: ["postgresql"],

  findBinaries: () =>
    beside(
      [
        ...pathFolders(),
        ...childFolders("/usr/lib/postgresql", /^\d+$/, "bin"),
        ...childFolders("/usr", /^pgsql-\d+$/, "bin"),
        "/usr/local/pgsql/bin",
        ...childFolders("/opt/homebrew/opt", /^postgresql(@\d+)?$/, "bin"),
        ...childFolders("/usr/local/opt", /^postgresql(@\d+)?$/, "bin"),
      ],
      { server: ["postgres"], initialise: ["initdb"] },
    ),

  initialise: async ({ initialise }, dir) => [
    initialise,
    // The folder is new and used by nothing else, so nothing is lost if the machine stops while it is created
    // (--no-sync).
    ...["-D", join(dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
  ],

  serve: ({ server }, dir, port) => [
    server,
    ...["-D", join(dir, "data"), "-p", String(port)],
    ...["-c", "listen_addresses=127.0.0.1", "-c", `unix_socket_directories=${dir}`],
  ],

  /** Fast shutdown: open connections are ended, the data is left clean. */
  stopSignal: "SIGINT",
  /** Immediate shutdown (`pg_ctl stop -m immediate`): no checkpoint, so the next start recovers from the log. */
  crashSignal: "SIGQUIT",

  docker: { image: "postgres:16", port: 5432, env: { POSTGRES_HOST_AUTH_METHOD: "trust" } },
};
