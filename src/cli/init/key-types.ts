/** What the keys of an application are: that decides how the ids of heroes, which are text, become ids of rows. */
import type { KeyColumn } from "./table-reader.js";

export type KeyType = "uuid" | "bigint" | "integer" | "text";

export interface TypedKey extends KeyColumn {
  readonly key: KeyType;
}

/** null: a type that nobody writes as text, such as UUIDs in 16 bytes. */
export function keyTypeOf(type: string): KeyType | null {
  const name = type.toLowerCase();
  if (/uuid|\bchar(acter)?( varying)?\(36\)|varchar\(36\)/.test(name)) return "uuid";
  if (/^(bigint|int8|bigserial)/.test(name)) return "bigint";
  // In SQLite INTEGER has 64 bits, but what programs get is a number.
  if (/^(tiny|small|medium)?int|^integer|^serial/.test(name)) return "integer";
  return /^(text|varchar|char|character|citext|nvarchar)/.test(name) ? "text" : null;
}

/** Tables of libraries: nobody's heroes. */
const isLibraryTable = (table: string) =>
  /^(pawl_|_|knex_|pg_|sqlite_|schema_|drizzle|ar_internal|flyway|goose|migrations?$|sessions?$)/i.test(table);

export const typedKeys = (keys: readonly KeyColumn[]): TypedKey[] =>
  keys.flatMap((one) => {
    const key = isLibraryTable(one.table) ? null : keyTypeOf(one.type);
    return key === null ? [] : [{ ...one, key }];
  });

/** What most tables have; of a tie, whichever comes first here. null: there are no tables. */
export function mostCommonKeyType(keys: readonly TypedKey[]): KeyType | null {
  const counts = (["bigint", "uuid", "integer", "text"] as const).map((key) => ({
    key,
    tables: keys.filter((one) => one.key === key).length,
  }));
  const mostCommon = counts.reduce((best, one) => (one.tables > best.tables ? one : best));
  return mostCommon.tables === 0 ? null : mostCommon.key;
}

/** Those that workflows are most often about, then any with the usual kind of key. */
const likelyHeroTables =
  /^(app_?)?(users?|accounts?|customers?|members?|people|orders?|subscriptions?|invoices?|projects?)$/i;

export function chooseHeroTable(keys: readonly TypedKey[]): TypedKey | null {
  const commonKeyType = mostCommonKeyType(keys);
  const likely = keys.filter(({ table }) => likelyHeroTables.test(table));
  const first = likely.sort((a, b) => rank(a.table) - rank(b.table))[0];
  return first ?? keys.find(({ key }) => key === commonKeyType) ?? null;
}

/** users before accounts before orders. */
function rank(table: string): number {
  const order = ["user", "account", "customer", "member", "people", "order", "subscription"];
  const place = order.findIndex((one) => table.toLowerCase().includes(one));
  return place === -1 ? order.length : place;
}
