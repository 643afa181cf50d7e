// The arguments of `npm test`, and the answer to unknown words.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.mjs";

export const help = `npm test [-- [options] [folders or files] [options of Vitest]]

Runs the tests against every store: memory, SQLite, libSQL, PostgreSQL, MariaDB or MySQL, and sqld. The tests of the
dashboard use Chromium.

  --store=NAME           one store only: memory, sqlite, postgres, mysql or sqld. Tests that run in memory otherwise
                         run on this store, and no other server is started.
  --without=NAME,NAME    leaves out what needs these: postgres, mysql, sqld, pgbouncer, chromium. Same as
                         PAWL_TEST_WITHOUT.
  --long                 more rounds of campaigns and random tests, and every store where two are enough otherwise.
                         Same as npm run test:long.
  --pgbouncer            all tests of PostgreSQL go through PgBouncer in transaction mode.
  --help                 this text.

  npm test -- test/function-style                    one folder
  npm test -- --store=postgres test/function-style   one folder on one store
  npm test -- -t "a signal"                          tests whose names match
  npm run test:unit                                  what needs neither a server nor a build, in seconds
  npm run test:watch                                 the same, again after each change

test/README.md tells how the tests are arranged, CONTRIBUTING.md how they find their databases and
Chromium.`;

const stores = ["memory", "sqlite", "postgres", "mysql", "sqld"];
const leavable = ["postgres", "mysql", "sqld", "pgbouncer", "chromium"];
/** What the tests of some stores need besides a server. */
const needs = { sqlite: ["chromium"], postgres: ["pgbouncer", "chromium"] };

/** Throws a plain sentence for an unknown word. */
export function readOptions(args, env) {
  if (args.includes("--help") || args.includes("-h")) return { wantsHelp: true };
  const optionValue = (name) => args.findLast((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1);
  const bare = args.find((arg) => arg === "--store" || arg === "--without");
  if (bare !== undefined)
    throw new Error(`${bare} takes its value behind an equals sign: npm test -- ${bare}=postgres.`);

  const without = (optionValue("--without") ?? env.PAWL_TEST_WITHOUT ?? "").split(",").filter(Boolean);
  const strange = without.filter((name) => !leavable.includes(name));
  if (strange.length > 0) throw new Error(`There is no ${strange.join(", ")} to leave out: ${leavable.join(", ")}.`);

  const store = optionValue("--store") ?? env.PAWL_TEST_STORE ?? "";
  if (store !== "" && !stores.includes(store))
    throw new Error(`There is no store "${store}" to test: ${stores.join(", ")}.`);
  if (without.includes(store)) throw new Error(`The store ${store} is chosen and left out: name it once.`);

  const throughPgbouncer = args.includes("--pgbouncer");
  if (throughPgbouncer && !["", "postgres"].includes(store))
    throw new Error(`--pgbouncer is for the tests of PostgreSQL, and --store=${store} leaves them out.`);

  const isOurs = (arg) => /^--(without|store)=/.test(arg) || arg === "--pgbouncer" || arg === "--long";
  checkPlaces(args, isOurs);
  return {
    without: withoutOthers(store, without),
    store,
    throughPgbouncer,
    isLong: args.includes("--long"),
    vitestArguments: args.filter((arg) => !isOurs(arg)),
  };
}

/** With one store chosen, no server of another store is started, and no browser for the stores that the dashboard is not tested on. */
function withoutOthers(store, without) {
  if (store === "") return without;
  const others = leavable.filter((name) => name !== store && !needs[store]?.includes(name));
  return [...new Set([...without, ...others])];
}

/** Each named folder or file must contain tests. Like Vitest, this treats the name as a part of their paths. */
function checkPlaces(args, isOurs) {
  // A word after an option of Vitest may be its value.
  const places = args.filter(
    (arg, n) => !arg.startsWith("-") && (n === 0 || isOurs(args[n - 1]) || !args[n - 1].startsWith("-")),
  );
  if (places.length === 0) return;
  const files = testFiles();
  for (const place of places) {
    const part = place.replace(/^\.\//, "").replace(/:\d+$/, "");
    if (files.some((file) => file.includes(part) || join(root, file).includes(part))) continue;
    const folders = [...new Set(files.map((file) => file.split("/").slice(0, 2).join("/")))];
    throw new Error(`There are no tests in "${place}". Folders with tests: ${folders.join(", ")}.`);
  }
}

const testFiles = () =>
  ["src", "test", "examples"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((file) => file.endsWith(".test.ts"))
      .map((file) => `${folder}/${file}`),
  );
