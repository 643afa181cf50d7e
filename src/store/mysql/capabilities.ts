/** What the server can do. MySQL and MariaDB are told apart here, and nowhere else. */

export interface Capabilities {
  /** Takes `BEGIN NOT ATOMIC … END`, and has `@@in_transaction`. */
  readonly hasBlocks: boolean;
}

const mysql: Capabilities = { hasBlocks: false };
const mariadb: Capabilities = { hasBlocks: true };

/** @param version as `SELECT VERSION()` answers: "8.0.36", "10.11.6-MariaDB-log" */
export const capabilitiesOf = (version: string): Capabilities => (/mariadb/i.test(version) ? mariadb : mysql);
