// PgBouncer in transaction mode in front of a PostgreSQL server, as ../servers.mjs starts it. It has no data of its own.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beside, pathFolders } from "../binaries.mjs";
import { postgres } from "./postgres.mjs";

export const pgbouncer = {
  name: "pgbouncer",
  label: "PgBouncer",
  accounts: ["postgres", "nobody"],
  packages: ["pgbouncer"],

  findBinaries: () =>
    beside([...pathFolders(), "/usr/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"], {
      server: ["pgbouncer"],
    }),

  /** Every database of the server that `target` (a URL) names, under its own name. */
  inFrontOf(target, { poolMode = "transaction", poolSize = 10 } = {}) {
    const { hostname, port, username, password } = new URL(target);
    const user = decodeURIComponent(username);
    const through = (toPort, database) => {
      const url = new URL(target);
      url.host = `127.0.0.1:${toPort}`;
      if (database !== undefined) url.pathname = `/${database}`;
      // Announces the pooler to Pawl, so that Pawl need not detect it.
      url.searchParams.set("pgbouncer", "true");
      return url.href;
    };
    const settings = {
      listen_addr: "127.0.0.1",
      unix_socket_dir: "",
      auth_type: "trust",
      admin_users: user,
      pool_mode: poolMode,
      default_pool_size: poolSize,
      max_client_conn: 1_000,
      // A server that is down is retried soon, as the tests that restart it expect.
      server_login_retry: 1,
    };
    return {
      ...pgbouncer,
      adminUser: user,
      /** PgBouncer's own console, which is available also while the server is not. */
      url: ({ port: toPort, database = "pgbouncer" }) => through(toPort, database === "pawl" ? undefined : database),
      connect: postgres.connect,
      initialise: async () => null,
      serve({ server }, dir, ownPort) {
        const users = join(dir, "users");
        const config = join(dir, "pgbouncer.ini");
        const entries = Object.entries({ ...settings, listen_port: ownPort, auth_file: users });
        writeFileSync(users, `"${user}" "${decodeURIComponent(password)}"\n`);
        writeFileSync(
          config,
          `[databases]\n* = host=${hostname} port=${port || 5432}\n[pgbouncer]\n${entries.map(([name, value]) => `${name} = ${value}\n`).join("")}`,
        );
        return [server, config];
      },
      /** Stops immediately with connected clients, in every version. */
      stopSignal: "SIGQUIT",
      crashSignal: "SIGKILL",
    };
  },
};
