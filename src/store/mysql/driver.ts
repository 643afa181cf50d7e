/** The part of mysql2 that the store uses, and the parsing of the store's URL. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { createDriverError } from "../shared/missing-driver.js";

/** A connection of "mysql2/promise". */
export interface DriverConnection {
  query(sql: string): Promise<readonly unknown[]>;
  /** Clears variables, temporary tables, locks and an open transaction. */
  reset(): Promise<unknown>;
  end(): Promise<unknown>;
  /** Closes the socket without rejecting the statements in flight. */
  destroy(): void;
  readonly connection?: { readonly stream?: { destroy(): void; resetAndDestroy?(): void } };
  on(event: "error" | "end", listener: (error?: unknown) => void): unknown;
}

export interface Driver {
  createConnection(options: Readonly<Record<string, unknown>>): Promise<DriverConnection>;
  escape(value: string): string;
}

export async function loadDriver(): Promise<Driver> {
  try {
    const module = (await import("mysql2/promise")) as unknown as { default?: Driver } & Driver;
    return module.default ?? module;
  } catch (cause) {
    throw createDriverError("mysql2", "The driver for MySQL and MariaDB is not installed: npm install mysql2", cause);
  }
}

export interface ServerAddress {
  /** The URL in the form that mysql2 accepts. */
  readonly uri: string;
  /** What messages call the database; contains no password. */
  readonly description: string;
}

export function parseUrl(url: string): ServerAddress {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !/^(mysql|mariadb):$/.test(parsed.protocol)) {
    throw new InvalidInputError("The URL of a MySQL store must look like mysql://user:password@host:3306/database.");
  }
  const database = decodeURIComponent(parsed.pathname.slice(1));
  if (database === "")
    throw new InvalidInputError(`The URL names no database: ${parsed.protocol}//${parsed.host}/<database>`);
  return {
    uri: url.replace(/^mariadb:/i, "mysql:"),
    description: `mysql ${parsed.hostname}:${parsed.port || "3306"}/${database}`,
  };
}
