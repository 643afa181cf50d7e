/** What the server can do. Only this file distinguishes MySQL from MariaDB. */

export interface Capabilities {
  /** Whether the server accepts `BEGIN NOT ATOMIC … END` and has `@@in_transaction`. */
  readonly hasBlocks: boolean;
}

const mysql: Capabilities = { hasBlocks: false };
const mariadb: Capabilities = { hasBlocks: true };

/** @param version the result of `SELECT VERSION()`, such as "8.0.36" or "10.11.6-MariaDB-log" */
export const capabilitiesOf = (version: string): Capabilities => (/mariadb/i.test(version) ? mariadb : mysql);
