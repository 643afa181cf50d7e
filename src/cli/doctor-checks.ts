/** The checks of `pawl doctor`: of this machine, then of the database. Each depends on the ones before it, so a problem ends the list. */

import { isBuiltin } from "node:module";
import { type Check, ok, problem } from "../client/operate/check.js";
import { checkDatabase } from "../client/operate/doctor.js";
import { openStore } from "../connect.js";
import { systemRuntime } from "../runtime/system.js";
import { isRemoteUrl } from "../store/libsql-remote/address.js";
import { redactUrl } from "../store/shared/secrets.js";
import { sentenceOf } from "./cli-error.js";
import { type Settings, storeOptionsOf } from "./config.js";
import { missingFile } from "./database.js";

const minNodeVersion = 20;

export async function runChecks(settings: Settings): Promise<Check[]> {
  const localChecks = [checkNode(), checkSettings(settings), await checkDriver(settings)];
  if (localChecks.some(({ verdict }) => verdict === "problem")) return localChecks;
  try {
    const missing = missingFile(settings.url);
    if (missing !== null)
      return [...localChecks, problem("connection", `There is no database ${missing}; run: pawl migrate`)];
    const store = await openStore(settings.url, storeOptionsOf(settings));
    try {
      return [...localChecks, ...(await checkDatabase(store, systemRuntime))];
    } finally {
      await store.close();
    }
  } catch (error) {
    return [...localChecks, problem("connection", sentenceOf(error))];
  }
}

function checkNode(): Check {
  const { node } = process.versions;
  return Number.parseInt(node, 10) >= minNodeVersion
    ? ok("node", node)
    : problem("node", `${node} is too old; Pawl needs ${minNodeVersion} or later.`);
}

function checkSettings({ url, urlSource, configFile }: Settings): Check {
  const from = urlSource === "default" ? "the default" : `from ${urlSource}`;
  const file = configFile === null ? "no configuration file" : configFile;
  return ok("settings", `${redactUrl(url)} (${from}); ${file}`);
}

const driverPackages: Readonly<Record<string, string>> = {
  sqlite: isBuiltin("node:sqlite") ? "node:sqlite" : "better-sqlite3",
  libsql: "libsql",
  file: "libsql",
  postgres: "pg",
  postgresql: "pg",
  mysql: "mysql2",
  mariadb: "mysql2",
};

const inMemoryUrls: Readonly<Record<string, string>> = {
  sqlite: "sqlite::memory:",
  libsql: "libsql::memory:",
  file: "libsql::memory:",
};

/**
 * Opens an in-memory database or the server to see whether the driver loads. A server that does not answer fails the
 * connection check, not this one.
 */
async function checkDriver(settings: Settings): Promise<Check> {
  const { url } = settings;
  const scheme = url.split(":")[0]?.toLowerCase() ?? "";
  const isServer = isRemoteUrl(url);
  const name = isServer ? "@libsql/client" : driverPackages[scheme];
  if (name === undefined) return ok("driver", "none is needed");
  try {
    const probeUrl = isServer ? url : (inMemoryUrls[scheme] ?? url);
    await (await openStore(probeUrl, probeUrl === url ? storeOptionsOf(settings) : {})).close();
  } catch (error) {
    if (isMissingPackage(error)) return problem("driver", sentenceOf(error));
  }
  return ok("driver", name);
}

function isMissingPackage(error: unknown): boolean {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
  if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND" || code === "ERR_DLOPEN_FAILED") return true;
  return cause !== undefined && cause !== null && isMissingPackage(cause);
}
