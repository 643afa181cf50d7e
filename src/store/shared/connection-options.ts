/** Checks the options of `connect` that only database servers have: `pooled`, `listenUrl` and `pool`. */
import { InvalidInputError } from "../../core/errors/errors.js";
import type { StoreOptions } from "../contract/store.js";
import { checkPasswordEncoding } from "./secrets.js";

type ConnectionOptions = Pick<StoreOptions, "pooled" | "listenUrl" | "pool">;

/** The scheme of a database URL, in lower case. */
type Scheme = string | undefined;

const isPostgres = (scheme: Scheme) => scheme === "postgres" || scheme === "postgresql";
const isMysql = (scheme: Scheme) => scheme === "mysql" || scheme === "mariadb";

/** @throws InvalidInputError for an option that this database does not have: it would be ignored otherwise */
export function checkConnectionOptions(scheme: Scheme, { pooled, listenUrl, pool }: ConnectionOptions): void {
  const values = { pooled, listenUrl, pool };
  const isSupported = {
    pooled: isPostgres(scheme),
    listenUrl: isPostgres(scheme),
    pool: isPostgres(scheme) || isMysql(scheme),
  };
  for (const name of ["pooled", "listenUrl", "pool"] as const) {
    if (values[name] === undefined || isSupported[name]) continue;
    const databases = name === "pool" ? "PostgreSQL and MySQL" : "PostgreSQL";
    throw new InvalidInputError(`\`${name}\` is for ${databases}; a "${scheme}" database does not have it.`);
  }
  if (pooled !== undefined && pooled !== "auto" && typeof pooled !== "boolean")
    throw new InvalidInputError(`\`pooled\` is true, false or "auto", not ${JSON.stringify(pooled)}.`);
  if (listenUrl !== undefined) checkListenUrl(listenUrl);
  if (pool !== undefined) checkPool(pool);
}

function checkListenUrl(url: unknown): void {
  if (typeof url !== "string" || !/^postgres(ql)?:/i.test(url))
    throw new InvalidInputError("`listenUrl` is the URL of the PostgreSQL server itself: postgres://….");
  checkPasswordEncoding(url);
}

function checkPool(pool: unknown): void {
  if (typeof pool !== "object" || pool === null)
    throw new InvalidInputError(`\`pool\` is { max, transactions }, not ${String(pool)}.`);
  for (const [name, size] of Object.entries(pool)) {
    if (name !== "max" && name !== "transactions")
      throw new InvalidInputError(`\`pool\` has no option "${name}": it has max and transactions.`);
    if (size === undefined || (Number.isInteger(size) && (size as number) >= 1)) continue;
    throw new InvalidInputError(`\`pool.${name}\` is a whole number of connections, at least 1, not ${String(size)}.`);
  }
}
