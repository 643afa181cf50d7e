/** The types of an application's keys. They decide how the ids of heroes, which are text, become ids of rows. */
import type { KeyColumn } from "./table-reader.js";

export type KeyType = "uuid" | "bigint" | "integer" | "text";

export interface TypedKey extends KeyColumn {
  readonly key: KeyType;
}

/** Returns null for a type that has no text form, such as UUIDs in 16 bytes. */
export function keyTypeOf(type: string): KeyType | null {
  const name = type.toLowerCase();
  if (/uuid|\bchar(acter)?( varying)?\(36\)|varchar\(36\)/.test(name)) return "uuid";
  if (/^(bigint|int8|bigserial)/.test(name)) return "bigint";
  // SQLite's INTEGER has 64 bits, but drivers return it as a number.
  if (/^(tiny|small|medium)?int|^integer|^serial/.test(name)) return "integer";
  return /^(text|varchar|char|character|citext|nvarchar)/.test(name) ? "text" : null;
}

/** Whether the table belongs to a library, so that no workflow is about its rows. */
const isLibraryTable = (table: string) =>
  /^(pawl_|_|knex_|pg_|sqlite_|schema_|drizzle|ar_internal|flyway|goose|migrations?$|sessions?$)/i.test(table);

export const typedKeys = (keys: readonly KeyColumn[]): TypedKey[] =>
  keys.flatMap((keyColumn) => {
    const key = isLibraryTable(keyColumn.table) ? null : keyTypeOf(keyColumn.type);
    return key === null ? [] : [{ ...keyColumn, key }];
  });

/**
 * Returns the key type that most tables have; in a tie, the first in the list below. Returns null if there are no
 * tables.
 */
export function mostCommonKeyType(keys: readonly TypedKey[]): KeyType | null {
  const counts = (["bigint", "uuid", "integer", "text"] as const).map((type) => ({
    type,
    tables: keys.filter(({ key }) => key === type).length,
  }));
  const mostCommon = counts.reduce((best, candidate) => (candidate.tables > best.tables ? candidate : best));
  return mostCommon.tables === 0 ? null : mostCommon.type;
}

/** The tables that workflows are most often about. Without one, the first table with the most common key type is chosen. */
const likelyHeroTables =
  /^(app_?)?(users?|accounts?|customers?|members?|people|orders?|subscriptions?|invoices?|projects?)$/i;

export function chooseHeroTable(keys: readonly TypedKey[]): TypedKey | null {
  const commonKeyType = mostCommonKeyType(keys);
  const likely = keys.filter(({ table }) => likelyHeroTables.test(table));
  const first = likely.sort((a, b) => rank(a.table) - rank(b.table))[0];
  return first ?? keys.find(({ key }) => key === commonKeyType) ?? null;
}

/** Ranks users before accounts before orders. */
function rank(table: string): number {
  const order = ["user", "account", "customer", "member", "people", "order", "subscription"];
  const place = order.findIndex((word) => table.toLowerCase().includes(word));
  return place === -1 ? order.length : place;
}
