import { describe, expect, test } from "vitest";
import { fieldsOf } from "./fields.js";
import { initialTyped, readForm, typedFor } from "./form-values.js";
import { noOptions, optionErrors, startBody, toCommand, toTypeScript } from "./start-request.js";

const schema = {
  type: "object",
  properties: {
    name: { type: "string", title: "Name", minLength: 2 },
    cents: { type: "integer", minimum: 1 },
    currency: { enum: ["EUR", "USD"], default: "EUR" },
    discount: { anyOf: [{ type: "number" }, { type: "null" }] },
    express: { type: "boolean" },
    notes: { type: "array", items: { type: "string" } },
    address: { $ref: "#/$defs/Address" },
    any: {},
  },
  required: ["name", "cents", "discount", "address"],
  $defs: { Address: { type: "object", properties: { zip: { type: "string", pattern: "^\\d+$" } }, required: ["zip"] } },
};
const fields = fieldsOf(schema) ?? [];

describe("the fields of a schema", () => {
  test("have a kind for each property; what a form cannot express is JSON", () => {
    expect(fields.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      "name text",
      "cents integer",
      "currency choice",
      "discount number",
      "express boolean",
      "notes list",
      "address object",
      "any json",
    ]);
    expect(fields.map(({ isRequired }) => isRequired)).toEqual([true, true, false, true, false, false, true, false]);
  });

  test("exist only for objects", () => {
    expect(fieldsOf(null)).toBe(null);
    expect(fieldsOf({ type: "string" })).toBe(null);
    expect(fieldsOf({ type: "object" })).toBe(null);
    expect(fieldsOf({ $ref: "https://example.com/schema" })).toBe(null);
  });

  test("end where references go round in circles", () => {
    const circle = { type: "object", properties: { a: { $ref: "#/$defs/A" } }, $defs: { A: { $ref: "#/$defs/A" } } };
    expect(fieldsOf(circle)?.map(({ kind }) => kind)).toEqual(["json"]);
    const tree = { type: "object", properties: { child: { $ref: "#" } } };
    expect(fieldsOf(tree)?.[0]?.kind).toBe("object");
  });
});

describe("the value of a form", () => {
  test("has what is typed; empty fields are left out, or null where that is allowed", () => {
    const typed = { ...initialTyped(fields), name: "Ada", cents: "250", notes: "a\n\nb", "address.zip": "10115" };
    expect(readForm(fields, typed)).toEqual({
      value: { name: "Ada", cents: 250, currency: "EUR", discount: null, notes: ["a", "b"], address: { zip: "10115" } },
      errors: {},
    });
  });

  test("says what is wrong beside the fields", () => {
    const { errors } = readForm(fields, { name: "A", cents: "1.5", any: "{", "address.zip": "x" });
    expect(Object.keys(errors)).toEqual(["name", "cents", "address.zip", "any"]);
    expect(readForm(fields, {}).errors).toMatchObject({
      name: "This is required.",
      "address.zip": "This is required.",
    });
  });

  test("can be typed again from a value, unless it has other fields", () => {
    const value = { name: "Ada", cents: 0, discount: 1.5, express: true, address: { zip: "1" }, any: [1, { a: 2 }] };
    expect(readForm(fields, typedFor(fields, value) ?? {}).value).toEqual(value);
    expect(typedFor(fields, { ...value, more: 1 })).toBe(null);
    expect(typedFor(fields, { $pawl: "undefined" })).toBe(null);
  });
});

describe("a start", () => {
  const options = { ...noOptions, key: "it's", tags: "a, b ,", priority: "3", heroType: "User", heroId: "7" };

  test("sends only what was given", () => {
    expect(startBody(undefined, noOptions)).toEqual({});
    expect(startBody({ a: 1 }, options)).toEqual({
      ...{ input: { a: 1 }, idempotencyKey: "it's", tags: ["a", "b"], priority: 3, hero: { type: "User", id: "7" } },
    });
  });

  test("is the same as a command and as TypeScript", () => {
    const body = startBody({ at: { $pawl: "Date", v: "2026-01-31T09:00:00.000Z" }, "a-b": [1n.toString()] }, options);
    expect(toCommand("order", { ...body, input: { a: "it's" } })).toBe(
      `pawl start order '{"a":"it'\\''s"}' --key 'it'\\''s' --hero User:7 --priority 3 --tag a --tag b`,
    );
    expect(toTypeScript("order", body)).toBe(
      'const run = await pawl.workflow("order").trigger({ at: new Date("2026-01-31T09:00:00.000Z"), "a-b": ["1"] }, { idempotencyKey: "it\'s", tags: ["a", "b"], priority: 3, hero: { type: "User", id: "7" } });',
    );
    expect(toTypeScript("order", { reason: "so" })).toContain('trigger(undefined, { reason: "so" })');
  });

  test("needs a whole hero and a number as the priority", () => {
    expect(Object.keys(optionErrors({ ...noOptions, heroType: "User", priority: "high" }))).toEqual([
      "priority",
      "heroId",
    ]);
    expect(optionErrors(options)).toEqual({});
  });
});
