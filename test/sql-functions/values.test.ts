/** What a run gets as its input when it was started with SQL: the same value as from the client. */
import fc from "fast-check";
import { connect, type Pawl, workflow } from "pawl";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { encode } from "../../src/core/encoding/encode.js";
import { forEachStore, type TestDatabase, testDatabase } from "../support/databases.js";
import { sized } from "../support/effort.js";
import { silent } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";
import { refusal, refusalOf, type SqlCaller, sqlCaller, sqlKinds } from "./sql-caller.js";

const echo = workflow("echo", async (_ctx, value: unknown) => ({ value }));
const limit = 1024 * 1024;
const nested = (levels: number, inner = "[]") => "[".repeat(levels - 1) + inner + "]".repeat(levels - 1);

const plainTexts = [
  "null",
  "true",
  '""',
  "[]",
  "{}",
  "[null, [], {}, [[]], [{}]]",
  '{"a": {"b": [1, 2.5, {"c": null}]}, "": 0}',
  "[0, 1, -1, 0.1, 1e21, 1e-7, 123456789012345678901234567890, 9007199254740993, 1.7976931348623157e308, 5e-324]",
  ' {\t"spaces" :\r\n[ 1 , 2 ] } ',
  '"quotes \' \\" ` and backslashes \\\\ \\\\\\\\ \\/ %s $1 ? :x @y {{}} -- /* */ # ;"',
  '"\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\\u0080"',
  '"\u{1f600} é 漢 \u200b \u2028 \ufeff \uffff"',
  '"\\ud83d\\ude00 \\u00e9 \\u6f22 \\u2028 \\uFFFF \\u0022 \\u005C \\u002f"',
  '{"__proto__": {"x": 1}, "constructor": 1, "toJSON": 2, "then": 3}',
  '{"a": 1, "a": 2}',
];

const taggedTexts = [
  '{"$pawl": "undefined"}',
  '{"$pawl":"Date","v":"2025-01-01T00:00:00.000Z"}',
  '{"$pawl" : {"$pawl"\n: [{"$pawl": null}]}, "other": {"$pawl": {}}}',
  '[{"a": {"$pawl": 1}}, {"$pawl": [{"b": 2}]}, "$pawl", {"x": "$pawl"}, {"$pawl ": 1}, {"$PAWL": 1}, {"v": {"$pawl": "Object", "v": {}}}]',
  '{"\\u0024p\\u0061wl": "undefined", "x": {"$pawl": "undefined"}}',
  '{"a\\"$pawl": {"$pawl": "bigint", "v": "1"}, "\\\\": {"$pawl": "}{"}, "}": "{\\"$pawl\\":1}", "\\\\\\"": {"$pawl": "\\\\"}}',
  nested(150, '{"$pawl": {"$pawl": [{"$pawl": 1}, {}]}}'),
];

forEachStore((kind) => {
  let database: TestDatabase;
  let pawl: Pawl;
  let sql: SqlCaller;
  let maxLevels = 200;

  beforeAll(async () => {
    database = await testDatabase(kind);
    pawl = await connect(database.url, { logger: silent });
    await pawl.worker({ workflows: [echo], lease: "1 minute" }).start();
  });
  afterAll(async () => {
    await pawl.close();
    await database.drop();
  });
  beforeEach(async () => {
    sql = await sqlCaller(kind, database.url);
    const [row] = await sql.query("SELECT version() AS version");
    // MySQL itself reads no JSON that is nested more deeply.
    if (kind === "mysql" && !/mariadb/i.test(row?.version)) maxLevels = 100;
  });
  const inputOf = async (id: string) => (await pawl.run(id).get()).input;

  test.each([...plainTexts, ...taggedTexts])("the input %s arrives as from the client", async (text) => {
    if (nestingOf(JSON.parse(text)) > maxLevels) return;
    const byClient = await pawl.start(echo, JSON.parse(text));
    const bySql = pawl.run<unknown, { value: unknown }>(await sql.start("echo", text));
    const { value } = await bySql.result();
    expect(value).toStrictEqual(JSON.parse(text));
    expect(value).toStrictEqual((await byClient.result()).value);
    expect(await inputOf(bySql.id)).toStrictEqual(await inputOf(byClient.id));
  });

  test("any JSON value, however it is written, arrives unchanged", async () => {
    const string = fc.oneof(
      fc.constantFrom("$pawl", "Object", "undefined", "v", '"', "\\", "{", "}", '"$pawl":', "é\u{1f600}"),
      fc.string({ unit: "grapheme" }),
      fc.string({ unit: "binary" }),
    );
    const { value: values } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { depthSize: "medium", withCrossShrink: true },
        fc.oneof(
          string,
          fc.double({ noDefaultInfinity: true, noNaN: true }),
          fc.integer(),
          fc.boolean(),
          fc.constant(null),
        ),
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(string, tie("value"), { maxKeys: 4 }),
      ),
    }));
    // jsonb has no U+0000; numbers are texts before they are values, and -0 is 0 there.
    const isPossible = (text: string) => kind !== "postgres" || !/\\u0000|\\ud[89a-f]/i.test(text);
    await fc.assert(
      fc.asyncProperty(values, fc.infiniteStream(fc.nat(3)), async (value, choices) => {
        const plain = JSON.stringify(value);
        if (!isPossible(plain)) return;
        const id = await sql.start(
          "echo",
          disguised(value, () => choices.next().value as number),
        );
        expect(await inputOf(id)).toStrictEqual(JSON.parse(plain));
      }),
      { numRuns: sized(100, 300) },
    );
  }, 120_000);

  if (kind === "mysql") {
    test("text is stored as the client would store it", async () => {
      for (const value of [
        'é "\\/\n\u0001',
        { a: [1, { $pawl: "\u{1f600}" }], $pawl: {} },
        "\u0000 \ud800 \udc00\ud800",
      ]) {
        const id = await sql.start("echo", JSON.stringify(value));
        const [row] = await sql.query("SELECT input FROM pawl_runs WHERE id = ?", [id]);
        expect(row?.input).toBe(encode(value, { label: "it" }));
      }
    });

    test("U+0000 and halves of surrogate pairs arrive, because they are only escapes in a text", async () => {
      const text = '["\\u0000","\\uD800","\\udc00 \\ud83d","\\ud83d\\u0041"]';
      expect(await inputOf(await sql.start("echo", text))).toStrictEqual(JSON.parse(text));
    });

    test("numbers keep what their text says", async () => {
      const id = await sql.start("echo", "[1.10, 1E2, -0, 12345678901234567890.12345678901234567890, 1e400]");
      const [row] = await sql.query("SELECT input FROM pawl_runs WHERE id = ?", [id]);
      expect(row?.input).toBe("[1.10, 1E2, -0, 12345678901234567890.12345678901234567890, 1e400]");
    });

    test("text is refused exactly if JavaScript cannot parse it", async () => {
      const texts = [
        ...[
          "",
          " ",
          "nul",
          "True",
          "NaN",
          "01",
          "1.",
          ".5",
          "+1",
          "-",
          "1e",
          "0x1",
          "--1",
          "1 2",
          "'a'",
          '"',
          '"a',
          "[",
          "]",
        ],
        ...[
          "[1,]",
          "[,1]",
          "[1 2]",
          "[-]",
          '{"a"}',
          '{"a":}',
          '{"a":1,}',
          "{a:1}",
          "{1:2}",
          '{"a" 1}',
          '{"a":1 "b":2}',
        ],
        ...[
          '"a\nb"',
          '"\t"',
          '"\u0001"',
          "\u0001",
          "\u0002",
          "[\u0001,\u0002]",
          '"\\x"',
          '"\\u12"',
          '"\\u123g"',
          '"\\\'"',
          '"a" "b"',
        ],
        ...[
          '{"a":1}}',
          "[1]]",
          "// 1",
          "1 /**/",
          "\u00a01",
          "\ufeff1",
          "tru e",
          '["a""b"]',
          "undefined",
          "(1)",
          "s",
          "v",
          "[s]",
        ],
      ];
      for (const text of texts)
        expect(await refusalOf(sql.start("echo", text)), text).toEqual(
          refusal(
            "SERIALIZATION_ERROR",
            'Cannot store the input of workflow "echo": it is not valid JSON; pass JSON text.',
          ),
        );
      const alphabet = [...'{}[]",:\\u01e.-+ \n/', "true", "null", '"$pawl"', "d83d"];
      await fc.assert(
        fc.asyncProperty(fc.json(), fc.nat(), fc.constantFrom(...alphabet), fc.nat(1), async (json, at, piece, cut) => {
          const place = at % (json.length + 1);
          const text = json.slice(0, place) + piece + json.slice(place + cut);
          const expected = parsed(text);
          if (expected === undefined)
            expect((await refusalOf(sql.start("echo", text))).code, text).toBe("SERIALIZATION_ERROR");
          else expect(await inputOf(await sql.start("echo", text)), text).toStrictEqual(expected.value);
        }),
        { numRuns: sized(150, 500) },
      );
    }, 120_000);
  } else {
    test("what jsonb cannot hold is refused by the server, with the reason", async () => {
      for (const text of ['"\\u0000"', '"\\ud800"', "{", "", "1."]) {
        const { code, message } = await refusalOf(sql.start("echo", text));
        expect(code).toBeUndefined();
        expect(message).toMatch(/unsupported Unicode escape sequence|invalid input syntax for type json/);
      }
    });

    test("the spaces of jsonb are not stored", async () => {
      const id = await sql.start("echo", '{"a": [1, 2], "b, c: d": ": , \\": "}');
      const [row] = await sql.query("SELECT input FROM pawl_runs WHERE id = $1", [id]);
      expect(row?.input).toBe('{"a":[1,2],"b, c: d":": , \\": "}');
    });
  }

  describe("limits", () => {
    test("an input of 1 MiB is accepted, and one more byte is refused as by the client", async () => {
      const largest = JSON.stringify("é".repeat((limit - 2) / 2));
      expect(await inputOf(await sql.start("echo", largest))).toBe(JSON.parse(largest));
      const tooLarge = JSON.stringify(`${"é".repeat((limit - 2) / 2)}a`);
      const { message } = await errorOf(pawl.start(echo, JSON.parse(tooLarge)));
      expect(await refusalOf(sql.start("echo", tooLarge))).toEqual(refusal("PAYLOAD_TOO_LARGE", message));
    });

    test("a list of 1 MiB and an object of 1 MiB are accepted", async () => {
      const list = JSON.stringify(Array.from({ length: limit / 2 - 1 }, () => 1));
      expect(await inputOf(await sql.start("echo", list))).toHaveLength(limit / 2 - 1);
      const rows = Array.from({ length: 15_000 }, (_, n) => ({
        id: n,
        name: `né ${n}`,
        [n % 99 === 0 ? "$pawl" : "x"]: n,
      }));
      expect(await inputOf(await sql.start("echo", JSON.stringify(rows)))).toEqual(rows);
    }, 120_000);

    test("the limit is that of the stored text, in which a key $pawl takes more", async () => {
      const text = JSON.stringify(Array.from({ length: 40_000 }, () => ({ $pawl: 1 })));
      expect(text.length).toBeLessThan(limit);
      expect((await refusalOf(sql.start("echo", text))).code).toBe("PAYLOAD_TOO_LARGE");
    }, 120_000);

    test("deep nesting is accepted up to the limit, and refused beyond it", async () => {
      for (const text of [nested(maxLevels), `${'{"a":'.repeat(maxLevels - 1)}{}${"}".repeat(maxLevels - 1)}`])
        expect(await inputOf(await sql.start("echo", text))).toEqual(JSON.parse(text));
      for (const text of [nested(maxLevels + 1), nested(maxLevels + 1, "{}"), nested(1_000, '{"$pawl": 1}')])
        expect(await refusalOf(sql.start("echo", text))).toEqual(
          refusal(
            "SERIALIZATION_ERROR",
            `Cannot store the input of workflow "echo": it is nested more than ${maxLevels} levels deep; pass plain data instead.`,
          ),
        );
    });
  });
}, sqlKinds);

const parsed = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
};

const nestingOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(nestingOf)) : 0;

/** JSON text of the value with spaces and escapes that JSON.stringify would not write. */
function disguised(value: unknown, choose: () => number): string {
  const space = () => ["", "", " ", "\n\t"][choose()] as string;
  const write = (part: unknown): string => {
    if (typeof part === "string") return writeString(part);
    if (typeof part !== "object" || part === null) return JSON.stringify(part);
    const parts = Array.isArray(part)
      ? part.map((item) => `${space()}${write(item)}${space()}`)
      : Object.entries(part).map(
          ([key, item]) => `${space()}${writeString(key)}${space()}:${space()}${write(item)}${space()}`,
        );
    return Array.isArray(part) ? `[${parts.join()}]` : `{${parts.join() || space()}}`;
  };
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const writeString = (text: string) => {
    const units = [
      ...JSON.stringify(text)
        .slice(1, -1)
        .matchAll(/\\u[0-9a-f]{4}|\\.|[^\\]/gsu),
    ].map(([unit]) => unit);
    const written = units.map((unit) => {
      if (unit.startsWith("\\") || choose() !== 0) return unit === "/" && choose() === 0 ? "\\/" : unit;
      return unit.split("").map(escaped).join("");
    });
    return `"${written.join("")}"`;
  };
  return `${space()}${write(value)}${space()}`;
}
