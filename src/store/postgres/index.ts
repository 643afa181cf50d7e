/** Opens the PostgreSQL store. */

import { InvalidInputError, StoreError } from "../../core/errors/errors.js";
import { systemRuntime } from "../../runtime/system.js";
import type { Store, StoreOptions } from "../contract/store.js";
import { Database } from "./connection/database.js";
import { loadPg, type PgModule } from "./connection/driver.js";
import { isRefusedParameter, messageOf } from "./connection/errors.js";
import { withoutStartupParameters } from "./connection/pooler-detector.js";
import { PostgresStore } from "./store.js";
import { tablesIn } from "./tables.js";

/**
 * Opens a store on a PostgreSQL database (12 or later). Needs the package `pg`.
 *
 * @example
 * const store = await openPostgres("postgres://user:password@localhost:5432/app", { schema: "jobs" });
 */
export async function openPostgres(url: string, options: StoreOptions = {}): Promise<Store> {
  const pg = await loadPg();
  const pooled = options.pooled ?? (isPgBouncerUrl(url) ? true : "auto");
  try {
    return await open(pg, url, options, pooled);
  } catch (error) {
    if (pooled !== "auto" || !isRefusedParameter(error)) throw error;
    options.onWarning?.(poolerWarning(messageOf(error), options));
    return open(pg, url, options, true);
  }
}

async function open(
  pg: PgModule,
  originalUrl: string,
  options: StoreOptions,
  pooled: boolean | "auto",
): Promise<PostgresStore> {
  const runtime = options.runtime ?? systemRuntime;
  const { url, removed } =
    pooled === true ? withoutStartupParameters(originalUrl, options.schema) : { url: originalUrl, removed: [] };
  const onWarning = (...args: [message: string, error?: unknown]) => options.onWarning?.(...args);
  if (removed.length > 0)
    onWarning(
      `the pooler does not accept ${removed.join(", ")} in the URL, so Pawl leaves it out: set it for the role instead.`,
    );
  const onPoolerDetected = (sign: string) => onWarning(poolerWarning(sign, options));
  const db = new Database({ runtime, pg, url, onWarning, pooled, onPoolerDetected, pool: options.pool });
  try {
    const { schema, address } = await db.describe();
    if (options.schema === "") throw new StoreError("The schema's name is empty.", { transient: false });
    const chosenSchema = options.schema ?? schema;
    if (options.schema === undefined) refuseSchemaParameter(url, schema);
    if (chosenSchema === null) {
      throw new StoreError("No schema of the search_path exists; name one with the option `schema`.", {
        transient: false,
      });
    }
    const description =
      options.schema === undefined ? `postgres ${address}` : `postgres ${address} (schema ${chosenSchema})`;
    return new PostgresStore({ runtime, pg, url, db, tables: tablesIn(chosenSchema), description, options });
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** `?pgbouncer=true` is Prisma's parameter for poolers; the pooler URLs of hosting providers often contain it. */
const isPgBouncerUrl = (url: string): boolean => new URLSearchParams(url.split("?")[1]).get("pgbouncer") === "true";

function poolerWarning(sign: string, { listenUrl }: StoreOptions): string {
  const pollingNote =
    listenUrl === undefined
      ? " Other processes' changes are found by polling, unless `listenUrl` names the server."
      : "";
  return `the connection goes through a pooler (${sign}): Pawl uses no prepared statements and session settings.${pollingNote} Set connect(url, { pooled: true }) to skip this detection.`;
}

/**
 * `?schema=app` is a parameter of Prisma's that `pg` ignores, so the tables would silently be created in another
 * schema. The parameter is accepted if it names the schema that is opened anyway, as Prisma's default `?schema=public`
 * does.
 */
function refuseSchemaParameter(url: string, openedSchema: string | null): void {
  const urlSchema = new URLSearchParams(url.split("?")[1]).get("schema");
  if (urlSchema === null || urlSchema === openedSchema) return;
  throw new InvalidInputError(
    `"?schema=${urlSchema}" in the URL of a PostgreSQL database has no effect: use connect(url, { schema: "${urlSchema}" }), or --schema ${urlSchema} on the command line.`,
  );
}
