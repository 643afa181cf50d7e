// Finds a database for each store the tests need. What is tried, in this order:
//
//   1. the address the user gives in engine.urlVariable
//   2. a server on the standard port that lets one of engine.users in: we make a database of our own there
//   3. the machine's server programs, run in a temporary folder
//   4. the same, after installing them from the system's packages
//   5. Docker
//
// Each source gives `{ database }` or `{ why }` not; a database is `{ url, description, close }`.

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { findOrInstall } from "./binaries.mjs";
import { startContainer } from "./docker.mjs";
import { chromium } from "./engines/chromium.mjs";
import { mysql } from "./engines/mysql.mjs";
import { postgres } from "./engines/postgres.mjs";
import { sqld } from "./engines/sqld.mjs";
import { ownServer } from "./servers.mjs";

export const engines = [postgres, mysql, sqld, chromium];

/** A database for `engine`'s tests. Throws a plain sentence when none is available. */
export async function findDatabase(engine) {
  if (engine.programVariable) return findProgram(engine);
  if (process.env[engine.urlVariable]) return givenByUser(engine);
  const whyNot = [];
  for (const source of [onStandardPort, inTemporaryFolder, inContainer]) {
    const { database, why } = await source(engine);
    if (database) return database;
    whyNot.push(why);
  }
  throw new Error(
    `The tests need a ${engine.label} server and there is none: ${whyNot.join("; ")}. ` +
      `Start one, name one in ${engine.urlVariable}, or leave it out with PAWL_TEST_WITHOUT=${engine.name}.`,
  );
}

/** A program that tests start themselves: it is started once, to check that it works. */
async function findProgram(engine) {
  const given = process.env[engine.programVariable];
  if (given && !existsSync(given)) throw new Error(`${engine.programVariable} is set, but there is no file ${given}.`);
  const { binaries, why } = await findOrInstall(engine);
  const problem = why ?? (await tryOut(engine, binaries));
  if (problem) {
    throw new Error(
      `The tests need ${engine.label} and it is not to be had: ${problem}. ` +
        `Name its program in ${engine.programVariable}, or leave it out with PAWL_TEST_WITHOUT=${engine.name}.`,
    );
  }
  const description = `${await engine.version(binaries)} (${binaries.server}), started by each test for itself`;
  return { env: { [engine.programVariable]: binaries.server }, description, close: async () => {} };
}

async function tryOut(engine, binaries) {
  try {
    if (engine.tryOut) await engine.tryOut(binaries);
    else await (await ownServer(engine, binaries)).remove();
    return undefined;
  } catch (error) {
    return `${binaries.server} could not be started (${reason(error)})`;
  }
}

/** The user's setting is final: if that server does not answer, this is reported and nothing else is tried. */
async function givenByUser(engine) {
  const url = process.env[engine.urlVariable];
  try {
    const version = await versionAt(engine, url);
    return { url, description: `${version} at ${new URL(url).host} (${engine.urlVariable})`, close: async () => {} };
  } catch (error) {
    throw new Error(`${engine.urlVariable} is set, but no ${engine.label} server lets us in there: ${reason(error)}.`);
  }
}

async function onStandardPort(engine) {
  const port = Number(process.env[engine.portVariable] ?? engine.standardPort);
  let why;
  for (const user of new Set(engine.users.filter(Boolean))) {
    try {
      return { database: await createDatabase(engine, user, port) };
    } catch (error) {
      // The first user is the likeliest to exist, so its refusal is the most informative.
      why ??= `127.0.0.1:${port} does not let us in as ${user} (${reason(error)})`;
    }
  }
  return { why };
}

async function createDatabase(engine, user, port) {
  const name = `pawl_test_${randomBytes(4).toString("hex")}`;
  const asAdmin = async (work) => {
    const admin = await engine.connect(engine.url({ user, port }));
    try {
      return await work(admin);
    } finally {
      await admin.close();
    }
  };
  await asAdmin((admin) => admin.createDatabase(name));
  const url = engine.url({ user, port, database: name });
  const description = `${await versionAt(engine, url)} on 127.0.0.1:${port}, database ${name}`;
  return { url, description, close: () => asAdmin((admin) => admin.dropDatabase(name)) };
}

async function inTemporaryFolder(engine) {
  const { binaries, why } = await findOrInstall(engine);
  if (!binaries) return { why };
  try {
    const server = await ownServer(engine, binaries);
    const description = `${await versionAt(engine, server.url)}, our own on port ${server.port} (${binaries.server})`;
    return { database: { url: server.url, description, close: () => server.remove() } };
  } catch (error) {
    return { why: `${binaries.server} could not be started (${reason(error)})` };
  }
}

async function inContainer(engine) {
  const { port, remove, why } = await startContainer(engine);
  if (why) return { why };
  const { url, description } = await createDatabase(engine, engine.adminUser, port);
  return { database: { url, description: `${description}, in Docker (${engine.docker.image})`, close: remove } };
}

async function versionAt(engine, url) {
  const connection = await engine.connect(url);
  try {
    return await connection.version();
  } finally {
    await connection.close();
  }
}

/** Node reports a refused connection to several addresses with an empty message and a code. */
const reason = (error) => (error.message || error.code || String(error)).trim().replace(/\.$/, "");
