import { expect, test } from "vitest";
import { chooseHeroTable, keyTypeOf, mostCommonKeyType, typedKeys } from "./key-types.js";
import { snakeCase, typeNameOf } from "./names.js";

test.each([
  ["uuid", "uuid"],
  ["char(36)", "uuid"],
  ["character varying(36)", "uuid"],
  ["bigint", "bigint"],
  ["bigint(20) unsigned", "bigint"],
  ["int(11)", "integer"],
  ["INTEGER", "integer"],
  ["smallint", "integer"],
  ["text", "text"],
  ["varchar(26)", "text"],
  ["binary(16)", null],
  ["timestamp", null],
])("a key of type %s is %s", (type, key) => {
  expect(keyTypeOf(type)).toBe(key);
});

const keys = (tables: Readonly<Record<string, string>>) =>
  typedKeys(Object.entries(tables).map(([table, type]) => ({ table, column: "id", type })));

test("the most common key type ignores the tables of tools", () => {
  expect(mostCommonKeyType(keys({ a: "uuid", b: "uuid", c: "bigint" }))).toBe("uuid");
  expect(
    mostCommonKeyType(keys({ a: "uuid", pawl_runs: "bigint", _prisma_migrations: "bigint", knex_x: "bigint" })),
  ).toBe("uuid");
  expect(mostCommonKeyType([])).toBeNull();
});

test("the first workflow is about users, if there are any", () => {
  expect(chooseHeroTable(keys({ accounts: "uuid", zebras: "bigint", users: "text" }))?.table).toBe("users");
  expect(chooseHeroTable(keys({ apples: "text", zebras: "bigint", yaks: "bigint" }))?.table).toBe("zebras");
  expect(chooseHeroTable(keys({ blobs: "binary(16)" }))).toBeNull();
});

test.each([
  ["users", "User", "user"],
  ["order_items", "OrderItem", "order_item"],
  ["categories", "Category", "category"],
  ["addresses", "Address", "address"],
  ["status", "Status", "status"],
  ["people", "Person", "person"],
  ["OrderLine", "OrderLine", "order_line"],
  ["workflows", "RowWorkflow", "row_workflow"],
  ["2fa-codes", "Row2faCode", "row2fa_code"],
  ["*/ evil", "Evil", "evil"],
])("a row of %s is a %s", (table, name, inSql) => {
  expect(typeNameOf(table)).toBe(name);
  expect(snakeCase(name)).toBe(inSql);
});
