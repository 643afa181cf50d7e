/** What the server can do. Only this file distinguishes MySQL from MariaDB. */

export interface Capabilities {
  /** Whether the server accepts `BEGIN NOT ATOMIC … END` and has `@@in_transaction`. */
  readonly hasBlocks: boolean;
}

const mysql: Capabilities = { hasBlocks: false };
const mariadb: Capabilities = { hasBlocks: true };

const isMariaDb = (version: string): boolean => /mariadb/i.test(version);

/** @param version the result of `SELECT VERSION()`, such as "8.0.36" or "10.11.6-MariaDB-log" */
export const capabilitiesOf = (version: string): Capabilities => (isMariaDb(version) ? mariadb : mysql);

/** The name of the product, for display. */
export const engineOf = (version: string): string => (isMariaDb(version) ? "MariaDB" : "MySQL");
