// MariaDB and MySQL, as the test command needs to know them. The fields are described in ../databases.mjs and
// ../servers.mjs.

import { join } from "node:path";
import { beside, childFolders, pathFolders } from "../binaries.mjs";
import { capture } from "../run.mjs";

export const mysql = {
  name: "mysql",
  label: "MySQL",
  urlVariable: "PAWL_TEST_MYSQL_URL",
  portVariable: "PAWL_TEST_MYSQL_PORT",
  standardPort: 3306,
  users: ["root", process.env.USER],
  adminUser: "root",

  url: ({ user, port, database = "" }) => `mysql://${user}@127.0.0.1:${port}/${database}`,

  async connect(url) {
    const { default: mysql2 } = await import("mysql2/promise");
    const connection = await mysql2.createConnection({ uri: url, connectTimeout: 5_000 });
    connection.on("error", () => {});
    return {
      version: async () => describeVersion((await connection.query("SELECT version() AS version"))[0][0].version),
      createDatabase: (name) => connection.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`),
      dropDatabase: (name) => connection.query(`DROP DATABASE IF EXISTS ${name}`),
      close: () => connection.end(),
    };
  },

  accounts: ["mysql", "nobody"],
  packages: ["mariadb-server"],

  findBinaries: () =>
    beside(
      [
        ...pathFolders(),
        ...["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/bin", "/usr/local/libexec"],
        ...childFolders("/opt/homebrew/opt", /^(mariadb|mysql)(@[\d.]+)?$/, "bin"),
        ...childFolders("/usr/local/opt", /^(mariadb|mysql)(@[\d.]+)?$/, "bin"),
      ],
      { server: ["mariadbd", "mysqld"] },
    ),

  async initialise({ server }, dir) {
    const data = join(dir, "data");
    if (!(await capture(server, ["--no-defaults", "--version"])).includes("MariaDB")) {
      return [server, "--no-defaults", "--initialize-insecure", `--datadir=${data}`, ownTemporaryFolder(dir)];
    }
    // The script is in bin even where the server is in sbin.
    const folders = [...pathFolders(), "/usr/bin", "/usr/local/bin", join(server, "..")];
    const found = beside(folders, { script: ["mariadb-install-db", "mysql_install_db"] });
    if (!found) throw new Error(`${server} is here, but mariadb-install-db, which prepares its data folder, is not.`);
    return [
      found.script,
      ...["--no-defaults", `--datadir=${data}`, ownTemporaryFolder(dir)],
      ...["--auth-root-authentication-method=normal", "--skip-test-db"],
    ];
  },

  serve: ({ server }, dir, port) => [
    server,
    // --no-defaults must come first.
    ...["--no-defaults", `--datadir=${join(dir, "data")}`, `--port=${port}`, "--bind-address=127.0.0.1"],
    ...[`--socket=${join(dir, "sock")}`, `--pid-file=${join(dir, "pid")}`, "--character-set-server=utf8mb4"],
    ownTemporaryFolder(dir),
  ],

  stopSignal: "SIGTERM",
  /** There is no gentler way to crash the server. */
  crashSignal: "SIGKILL",

  docker: { image: "mariadb:11", port: 3306, env: { MARIADB_ALLOW_EMPTY_ROOT_PASSWORD: "1" } },
};

/**
 * A server that starts deletes the temporary tables of a former life in its temporary folder. In /tmp these would be the
 * tables of another server that is running, which then fails with "Error on delete of '/tmp/#sql-temptable-…'", or crashes.
 */
const ownTemporaryFolder = (dir) => `--tmpdir=${dir}`;

/** "10.11.19-MariaDB-0+deb12u1" → "MariaDB 10.11.19" */
function describeVersion(version) {
  const number = version.split("-")[0];
  return version.includes("MariaDB") ? `MariaDB ${number}` : number;
}
